// Numbers distinct texts of bytes: each text gets the number of its first appearance.
#pragma once

#include <cstdint>
#include <cstring>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
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
  if (size > 0) {  // the address of nothing may be none
    std::memcpy(words, data, size);
  }
  return folded_product(words[0] ^ hash, words[1] ^ kOther);
}

// Bytes that are put together again and again: room for a piece is made once, then it is written without a check.
class Bytes {
 public:
  void clear() {
    size_ = 0;
  }
  void release() {
    data_ = std::vector<char>();
    size_ = 0;
  }
  // Never null: even of no bytes, `memcmp` must not get it.
  const char* data() const {
    return data_.empty() ? "" : data_.data();
  }
  size_t size() const {
    return size_;
  }
  // Make room for `more` bytes; the calls of `put` that follow need no more than these.
  void reserve(size_t more) {
    if (size_ + more > data_.size()) {
      data_.resize((size_ + more) * 2 + kFirst);
    }
  }
  void put(char letter) {
    data_[size_++] = letter;
  }
  void put(const void* from, size_t count) {
    if (count > 0) {
      std::memcpy(data_.data() + size_, from, count);
      size_ += count;
    }
  }
  template <typename Number>
  void put_number(Number number) {
    put(&number, sizeof(number));
  }

 private:
  static constexpr size_t kFirst = 64;
  std::vector<char> data_;
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
    const auto found = numbers_.find(std::string_view(data, size));
    if (found != numbers_.end()) {
      return {&texts_[static_cast<size_t>(found->second)], found->second};
    }
    const auto number = static_cast<int32_t>(texts_.size());
    texts_.emplace_back(data, size);
    try {
      numbers_.emplace(texts_.back(), number);
    } catch (...) {  // a text without its number would shift the numbers of all that follow
      texts_.pop_back();
      throw;
    }
    return {&texts_.back(), number};
  }

  size_t size() {
    std::lock_guard<std::mutex> held(mutex_);
    return texts_.size();
  }

  std::string text(size_t number) {
    std::lock_guard<std::mutex> held(mutex_);
    return texts_[number];
  }

 private:
  std::mutex mutex_;
  std::deque<std::string> texts_;
  std::unordered_map<std::string_view, int32_t> numbers_;
};

struct Nothing {};

// The part of an `Interner` that one thread has met: a look-up in it takes no lock. `More` is kept beside each text.
template <typename More = Nothing>
class InternerCache {
 public:
  struct Slot : More {
    uint64_t hash = 0;
    Interner::Entry entry{nullptr, -1};
  };

  void release() {
    slots_ = std::vector<Slot>();
    used_ = 0;
  }

  // The slot of this text, valid until the next call.
  Slot& slot(Interner& table, const char* data, size_t size) {
    const uint64_t hash = hash_of(data, size);
    if (!slots_.empty()) {
      Slot& found = slot_of(hash, data, size);
      if (found.entry.text != nullptr) {
        return found;
      }
    }
    const Interner::Entry entry = table.entry(data, size);
    make_room();
    Slot& found = slot_of(hash, data, size);
    found.hash = hash;
    found.entry = entry;
    ++used_;
    return found;
  }

  // How many texts it has.
  size_t count() const {
    return used_;
  }

  int32_t number(Interner& table, const char* data, size_t size) {
    return slot(table, data, size).entry.number;
  }

 private:
  static constexpr size_t kFirstSize = 16;
  static constexpr size_t kLargestSize = 1 << 16;

  // The slot of this text, or the free one where it belongs: there is always one.
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

  // Keep half of the slots free, and one more can be used.
  void make_room() {
    if ((used_ + 1) * 2 <= slots_.size()) {
      return;
    }
    if (slots_.size() >= kLargestSize) {  // texts that hardly repeat: start again, and stay small
      release();
    }
    std::vector<Slot> before(slots_.empty() ? kFirstSize : slots_.size() * 2);
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

inline bool starts_with(const char* text, const char* prefix) {
  return std::strncmp(text, prefix, std::strlen(prefix)) == 0;
}

// Whether this is one of the ops by which torch begins and ends a scope.
inline bool is_helper(const char* name) {
  return starts_with(name, "profiler::_record_function");
}

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

  void release() {
    texts_.release();
    names_ = std::vector<Name>();
  }

  // Valid until the next call.
  const Name& name(Interner& table, const char* at) {
    Name* known = names_.empty() ? nullptr : &names_[place_of(at)];
    if (known == nullptr || known->at != at || std::strcmp(known->text, at) != 0) {
      const Interner::Entry found = texts_.slot(table, at, std::strlen(at)).entry;
      if (known == nullptr || (known->at != nullptr && known->at != at && names_.size() < kLargestSize)) {
        grow();
        known = &names_[place_of(at)];
      }
      const char* text = found.text->c_str();
      *known = {at, text, found.number, mtprof::is_helper(text), starts_with(text, "Optimizer.step#"),
                std::strstr(text, "::") == nullptr};
    }
    return *known;
  }

 private:
  static constexpr size_t kFirstSize = 16;
  static constexpr size_t kLargestSize = 1024;

  size_t place_of(const char* at) const {
    return (((reinterpret_cast<uintptr_t>(at) >> 3) * 0x9E3779B97F4A7C15ull) >> 32) & (names_.size() - 1);
  }

  void grow() {
    std::vector<Name> before(names_.empty() ? kFirstSize : names_.size() * 2);
    before.swap(names_);
    for (const Name& name : before) {
      if (name.at != nullptr) {
        names_[place_of(name.at)] = name;
      }
    }
  }

  InternerCache<> texts_;
  std::vector<Name> names_;
};

}  // namespace mtprof
