// What one thread has recorded: rows of ops and scopes, and blocks of memory.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "clock.h"
#include "interner.h"
#include "stacks.h"

namespace mtprof {

// One op or scope, in one line of the processor's cache. Numbers are positions in the recording's tables, -1 for nothing.
struct alignas(64) Row {
  int64_t start;
  int64_t end;          // 0 while it runs
  int64_t sequence_nr;  // when the recording is read out, replaced by the position of the row
  Row* parent;          // the row that was running on the same thread
  int32_t name;
  int32_t inputs;
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

// Torch's number of a call, for its execution trace.
struct CallId {
  Row* row;
  uint64_t number;
};

enum RowFlag : uint8_t { kIsAsync = 1, kIsOptimizer = 2 };

// A block of memory that was allocated, or released: then it has no bytes.
struct Block {
  int64_t time;
  uint64_t address;
  int64_t nbytes;
  Row* row;
};

// A list whose items never move. Its parts double in size, so that a short-lived thread needs little memory.
template <typename Item>
class Chunks {
 public:
  Item* add() {
    if (used_ == size_) {
      size_ = parts_.empty() ? kFirst : (size_ < kLargest ? size_ * 2 : kLargest);
      parts_.push_back({std::unique_ptr<Item[]>(new Item[size_]), size_});
      used_ = 0;
    }
    ++count_;
    return &parts_.back().items[used_++];
  }

  size_t count() const {
    return count_;
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
  static constexpr size_t kFirst = 64;
  static constexpr size_t kLargest = 8192;
  struct Part {
    std::unique_ptr<Item[]> items;
    size_t size;
  };
  std::vector<Part> parts_;
  size_t used_ = 0, size_ = 0, count_ = 0;
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

// Memory of a few objects of one size, to be used again.
class SpareBlocks {
 public:
  ~SpareBlocks() {
    while (count_ > 0) {
      ::operator delete(blocks_[--count_]);
    }
  }
  void* take(size_t size) {
    return count_ > 0 ? blocks_[--count_] : ::operator new(size);
  }
  void give(void* block) {
    if (count_ < kMost) {
      blocks_[count_++] = block;
    } else {
      ::operator delete(block);
    }
  }

 private:
  static constexpr int kMost = 64;
  int count_ = 0;
  void* blocks_[kMost];
};

// The records of one thread. All of it is used under `lock`, the stack's frames by the owner alone.
struct ThreadRecords {
  SpinLock lock;
  // The recording that it belongs to; nullptr where that has ended.
  Recording* recording = nullptr;
  uint64_t generation = 0;
  int64_t native_id = 0;
  uint64_t torch_id = 0;
  Chunks<Row> rows;
  Chunks<Block> blocks;
  Chunks<CallId> ids;
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
  InternerCache inputs, addresses;
  ThreadStack stack;
  Bytes inputs_text, values_text, addresses_text;
  // Used by the owner alone, without the lock.
  ThreadClock clock;
  SpareBlocks contexts;
};

}  // namespace mtprof
