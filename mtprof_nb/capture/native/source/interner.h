// Numbers distinct texts of bytes: each text gets the number of its first appearance.
#pragma once

#include <cstdint>
#include <cstring>
#include <deque>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace mtprof {

// Both halves of a product, one on the other.
inline uint64_t folded_product(uint64_t one, uint64_t other) {
  const auto product = static_cast<unsigned __int128>(one) * other;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

inline uint64_t hash_of(const char* data, size_t size) {
  constexpr uint64_t kOne = 0x9E3779B97F4A7C15ull, kOther = 0xC4CEB9FE1A85EC53ull;
  uint64_t hash = kOne ^ size;
  uint64_t words[2];
  for (; size >= sizeof(words); size -= sizeof(words), data += sizeof(words)) {
    std::memcpy(words, data, sizeof(words));
    hash = folded_product(words[0] ^ hash, words[1] ^ kOther);
  }
  words[0] = words[1] = 0;
  std::memcpy(words, data, size);
  return folded_product(words[0] ^ hash, words[1] ^ kOther);
}

// Bytes that are put together again and again: room for a piece is made once, then it is written without a check.
class Bytes {
 public:
  void clear() {
    size_ = 0;
  }
  const char* data() const {
    return data_.data();
  }
  size_t size() const {
    return size_;
  }
  // Make room for `more` bytes; the calls of `put` that follow need no more than these.
  void reserve(size_t more) {
    if (size_ + more > data_.size()) {
      data_.resize((size_ + more) * 2);
    }
  }
  void put(char letter) {
    data_[size_++] = letter;
  }
  void put(const void* from, size_t count) {
    std::memcpy(data_.data() + size_, from, count);
    size_ += count;
  }
  template <typename Number>
  void put_number(Number number) {
    put(&number, sizeof(number));
  }

 private:
  std::vector<char> data_ = std::vector<char>(256);
  size_t size_ = 0;
};

// The table that all threads share. Texts never move, so that threads may keep pointers to them.
class Interner {
 public:
  struct Entry {
    const std::string* text;
    int32_t number;
  };

  Entry entry(const char* data, size_t size) {
    std::lock_guard<std::mutex> held(mutex_);
    auto [found, is_new] = numbers_.try_emplace(std::string(data, size), static_cast<int32_t>(texts_.size()));
    if (is_new) {
      texts_.push_back(&found->first);  // keys of an unordered_map stay where they are
    }
    return {&found->first, found->second};
  }

  size_t size() {
    std::lock_guard<std::mutex> held(mutex_);
    return texts_.size();
  }

  std::string text(size_t number) {
    std::lock_guard<std::mutex> held(mutex_);
    return *texts_[number];
  }

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, int32_t> numbers_;
  std::deque<const std::string*> texts_;
};

// The part of an `Interner` that one thread has met: a look-up in it takes no lock.
class InternerCache {
 public:
  void reset() {
    slots_.assign(kFirstSize, Slot{});
    used_ = 0;
  }

  Interner::Entry entry(Interner& table, const char* data, size_t size) {
    const uint64_t hash = hash_of(data, size);
    Slot& slot = slot_of(hash, data, size);
    if (slot.entry.text == nullptr) {
      slot = Slot{hash, table.entry(data, size)};
      const Interner::Entry found = slot.entry;
      grow_when_full();
      return found;
    }
    return slot.entry;
  }

 private:
  struct Slot {
    uint64_t hash = 0;
    Interner::Entry entry{nullptr, -1};
  };
  static constexpr size_t kFirstSize = 256;
  static constexpr size_t kLargestSize = 1 << 16;

  // The slot of this text, or the free one where it belongs.
  Slot& slot_of(uint64_t hash, const char* data, size_t size) {
    const size_t mask = slots_.size() - 1;
    for (size_t at = hash & mask;; at = (at + 1) & mask) {
      Slot& slot = slots_[at];
      const std::string* text = slot.entry.text;
      if (text == nullptr || (slot.hash == hash && text->size() == size && !std::memcmp(text->data(), data, size))) {
        return slot;
      }
    }
  }

  void grow_when_full() {
    if (++used_ * 2 < slots_.size()) {
      return;
    }
    if (slots_.size() >= kLargestSize) {  // texts that hardly repeat: start again, and stay small
      reset();
      return;
    }
    std::vector<Slot> before(slots_.size() * 2);
    before.swap(slots_);
    for (const Slot& slot : before) {
      if (slot.entry.text != nullptr) {
        slot_of(slot.hash, slot.entry.text->data(), slot.entry.text->size()) = slot;
      }
    }
  }

  std::vector<Slot> slots_;
  size_t used_ = 0;
};

// Names of ops by their address, for one thread: an op has its name at the same place each time. What is there now is
// compared, because the memory of a name may be used again for another one.
class NameCache {
 public:
  struct Name {
    const char* at = nullptr;
    const char* text = nullptr;
    int32_t number = -1;
    bool is_helper = false;
    bool is_optimizer_step = false;
    bool may_have_keywords = false;
  };

  void reset() {
    texts_.reset();
    names_.assign(size_t{1} << kBits, Name{});
  }

  const Name& name(Interner& table, const char* at) {
    const auto address = reinterpret_cast<uintptr_t>(at);
    Name& known = names_[((address >> 3) * 0x9E3779B97F4A7C15ull) >> (64 - kBits)];
    if (known.at != at || std::strcmp(known.text, at) != 0) {
      const Interner::Entry found = texts_.entry(table, at, std::strlen(at));
      const std::string& text = *found.text;
      known = {at, text.c_str(), found.number, starts_with(text, "profiler::_record_function"),
               starts_with(text, "Optimizer.step#"), text.find("::") == std::string::npos};
    }
    return known;
  }

 private:
  static constexpr int kBits = 10;

  static bool starts_with(const std::string& text, const char* prefix) {
    return text.compare(0, std::strlen(prefix), prefix) == 0;
  }

  InternerCache texts_;
  std::vector<Name> names_;
};

}  // namespace mtprof
