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

inline uint64_t hash_of(const char* data, size_t size) {
  uint64_t hash = 0x9E3779B97F4A7C15ull ^ size;
  while (size >= 8) {
    uint64_t word;
    std::memcpy(&word, data, 8);
    hash = (hash ^ word) * 0xFF51AFD7ED558CCDull;
    hash ^= hash >> 32;
    data += 8;
    size -= 8;
  }
  uint64_t word = 0;
  std::memcpy(&word, data, size);
  hash = (hash ^ word) * 0xC4CEB9FE1A85EC53ull;
  return hash ^ (hash >> 29);
}

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

}  // namespace mtprof
