// What one thread has recorded: rows of ops and scopes, and blocks of memory.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <thread>
#include <vector>

#include "clock.h"
#include "interner.h"
#include "last_stacks.h"

namespace mtprof {

// One op or scope, in one line of the processor's cache. Numbers are positions in the recording's tables, -1 for nothing.
struct alignas(64) Row {
  int64_t start;
  int64_t end;          // 0 while it runs
  int64_t sequence_nr;  // when the recording is read out, replaced by the position of the row
  Row* parent;          // the row that was running on the same thread
  int32_t name;
  int32_t form;
  int32_t values;
  int32_t stack;
  int32_t forward_thread;
  int32_t addresses;
  int32_t extra;
  uint8_t scope;
  uint8_t flags;
  int8_t device_type;
  int8_t device_index;
};

static_assert(sizeof(Row) == 64, "a row is one line of the cache");

// The `values` of a row whose values are kept for it alone, in `ThreadRecords::values_of_rows`.
constexpr int32_t kOwnValues = -2;

// Torch's number of a call, for its execution trace.
struct CallId {
  Row* row;
  uint64_t number;
};

enum RowFlag : uint8_t { kIsAsync = 1, kIsOptimizer = 2, kHasMemory = 4 };

// A block of memory that was allocated, or released: then it has no bytes.
struct Block {
  int64_t time;
  uint64_t address;
  int64_t nbytes;
  Row* row;
  int32_t stack;  // where it was allocated outside any op; -1 for all others
  int8_t device_type = 0;
  int8_t device_index = 0;
};

// A list whose items never move. Its parts double in size, so that a short-lived thread needs little memory.
template <typename Item>
class Chunks {
 public:
  // The next item, which is none of the list before `add`. Where there is no memory for it, the list stays as it is.
  Item* next() {
    if (used_ == size()) {
      const size_t more = parts_.empty() ? kFirst : std::min(size() * 2, kLargest);
      parts_.push_back({std::unique_ptr<Item[]>(new Item[more]), more});
      used_ = 0;
    }
    return &parts_.back().items[used_];
  }

  // Add the item that `next` returned.
  void add() {
    ++used_;
    ++count_;
  }

  size_t count() const {
    return count_;
  }

  // Keep the first `count` items. The memory of parts that have none of them is freed.
  void keep(size_t count) {
    while (!parts_.empty() && count_ - used_ >= count) {
      count_ -= used_;
      parts_.pop_back();
      used_ = size();
    }
    used_ -= count_ - count;
    count_ = count;
  }

  template <typename Function>
  void each(Function&& function) {
    for (size_t part = 0; part < parts_.size(); ++part) {
      const size_t last = part + 1 == parts_.size() ? used_ : parts_[part].size;
      for (size_t index = 0; index < last; ++index) {
        function(parts_[part].items[index]);
      }
    }
  }

  // Call `function` with the items from position `first` to before `last`.
  template <typename Function>
  void each_between(size_t first, size_t last, Function&& function) {
    size_t begins = 0;
    for (const Part& part : parts_) {
      const size_t ends = begins + part.size;
      for (size_t position = std::max(first, begins); position < std::min(last, ends); ++position) {
        function(part.items[position - begins]);
      }
      begins = ends;
    }
  }

 private:
  static constexpr size_t kFirst = 8;
  static constexpr size_t kLargest = 8192;
  struct Part {
    std::unique_ptr<Item[]> items;
    size_t size;
  };
  size_t size() const {
    return parts_.empty() ? 0 : parts_.back().size;
  }
  std::vector<Part> parts_;
  size_t used_ = 0, count_ = 0;
};

// Texts of bytes one behind the other, each after its length.
class KeptTexts {
 public:
  // Make room for a text; where there is no memory for it, nothing changes.
  void make_room(size_t size) {
    const size_t needed = size + kLongestLength;
    if (!parts_.empty() && parts_.back().size - parts_.back().used >= needed) {
      return;
    }
    const size_t usual = parts_.empty() ? kFirst : std::min(parts_.back().size * 2, kLargest);
    const size_t more = std::max(usual, needed);
    parts_.push_back({std::unique_ptr<char[]>(new char[more]), more, 0});
  }

  // Add a text for which there is room.
  void add(const char* data, size_t size) {
    Part& part = parts_.back();
    char* to = part.items.get() + part.used;
    *to++ = static_cast<char>(std::min(size, kLong));
    if (size >= kLong) {
      const auto length = static_cast<uint32_t>(size);
      std::memcpy(to, &length, sizeof(length));
      to += sizeof(length);
    }
    std::memcpy(to, data, size);
    part.used = static_cast<size_t>(to - part.items.get()) + size;
  }

  // Reads the texts in the order in which they were added.
  class Cursor {
   public:
    explicit Cursor(const KeptTexts& texts) : texts_(texts) {}

    std::string_view next() {
      while (at_ == texts_.parts_[part_].used) {
        ++part_;
        at_ = 0;
      }
      const char* from = texts_.parts_[part_].items.get() + at_;
      uint32_t size = static_cast<unsigned char>(*from++);
      if (size == kLong) {
        std::memcpy(&size, from, sizeof(size));
        from += sizeof(size);
      }
      at_ = static_cast<size_t>(from - texts_.parts_[part_].items.get()) + size;
      return {from, size};
    }

   private:
    const KeptTexts& texts_;
    size_t part_ = 0, at_ = 0;
  };

 private:
  static constexpr size_t kFirst = 256, kLargest = 1 << 16, kLongestLength = 5, kLong = 255;
  struct Part {
    std::unique_ptr<char[]> items;
    size_t size, used;
  };
  std::vector<Part> parts_;
};

// A lock for sections of some hundred nanoseconds that hardly ever meet.
class SpinLock {
 public:
  void lock() {
    while (is_held_.exchange(true, std::memory_order_acquire)) {
      std::this_thread::yield();
    }
  }
  void unlock() {
    is_held_.store(false, std::memory_order_release);
  }

 private:
  std::atomic<bool> is_held_{false};
};

class Recording;

// Memory of a few objects of one size, to be used again: each block begins with the address of the next one.
class SpareBlocks {
 public:
  ~SpareBlocks() {
    release();
  }
  void release() {
    while (first_ != nullptr) {
      ::operator delete(take(0));
    }
  }
  void* take(size_t size) {
    if (first_ == nullptr) {
      return ::operator new(size);
    }
    void* block = first_;
    std::memcpy(&first_, block, sizeof(first_));
    --count_;
    return block;
  }
  void give(void* block) {
    if (count_ < kMost) {
      std::memcpy(block, &first_, sizeof(first_));
      first_ = block;
      ++count_;
    } else {
      ::operator delete(block);
    }
  }

 private:
  static constexpr int kMost = 64;
  int count_ = 0;
  void* first_ = nullptr;
};

// The values that ops of one form had last, and how many others there were. After many, no more are numbered.
struct ValuesOfForm {
  const std::string* last = nullptr;
  int32_t number = -1;
  int32_t others = 0;
};

// The records of one thread. All of it is used under `lock`, the stack's frames by the owner alone.
struct ThreadRecords {
  SpinLock lock;
  // The recording that it belongs to; nullptr where that has ended.
  Recording* recording = nullptr;
  uint64_t generation = 0;
  int64_t native_id = 0;
  uint64_t torch_id = 0;
  uint32_t pthread_id = 0;
  // When it took part in the recording first: numbers of threads are used again.
  int64_t joined = 0;
  Chunks<Row> rows;
  Chunks<Block> blocks;
  Chunks<CallId> ids;
  KeptTexts values_of_rows;
  // The innermost row that is running.
  Row* running = nullptr;
  // Rows since the recording was told of them.
  int64_t untold = 0;
  int64_t dropped = 0;
  int32_t optimizer_steps = 0;
  // Whether the owner reads inputs, under the lock: an op that this causes is not the program's.
  bool is_reading = false;
  // How many ops, which may end on another thread, still refer to this object.
  int64_t open = 0;
  // Whether the thread has ended. The object is deleted when no op and no recording refers to it either.
  bool is_orphan = false;
  NameCache names;
  InternerCache<ValuesOfForm> forms;
  InternerCache<> values, addresses;
  ThreadStack stack;
  Bytes forms_text, values_text, addresses_text;
  // Used by the owner alone, without the lock.
  ThreadClock clock;
  SpareBlocks contexts;

  void forget_rows() {
    rows = Chunks<Row>();
    blocks = Chunks<Block>();
    ids = Chunks<CallId>();
    values_of_rows = KeptTexts();
  }

  // Forget what only makes the owner faster. The tables that it refers to end with the recording.
  void release_caches() {
    names.release();
    forms.release();
    values.release();
    addresses.release();
    stack.reset();
    forms_text.release();
    values_text.release();
    addresses_text.release();
  }
};

}  // namespace mtprof
