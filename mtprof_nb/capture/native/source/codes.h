// Facts about code objects, copied without the GIL, so that no op waits for it.
//
// A code object is known by what it says of itself, its file, its name and its lines, and never by its address alone: it
// may be freed, and its memory used for another one. Each meeting therefore copies it again, until a reference is held.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <unordered_map>
#include <vector>

#include "checked_memory.h"
#include "interner.h"
#include "python_frames.h"

namespace mtprof {

// A `str` as Python stores it: `width` bytes for each character.
struct PythonText {
  std::string bytes;
  uint32_t width = 1;

  bool operator==(const PythonText& other) const {
    return width == other.width && bytes == other.bytes;
  }
};

struct CodeFacts {
  PythonText file, name;
  std::string lines;  // Python's table of locations
  int32_t first_line = 0;
  int32_t size = 0;   // of its instructions, in bytes
  int32_t begins = 0;  // its first instruction that is not part of making its frame, in bytes

  bool operator==(const CodeFacts& other) const {
    return first_line == other.first_line && size == other.size && begins == other.begins && lines == other.lines &&
           name == other.name && file == other.file;
  }

  // The line of an instruction; of one without a line, that of the instructions before it.
  int32_t line(int32_t instruction) const;
};

struct CodeFactsHash {
  size_t operator()(const CodeFacts& code) const {
    return hash_of(code.lines.data(), code.lines.size()) ^ hash_of(code.name.bytes.data(), code.name.bytes.size()) * 31 ^
           hash_of(code.file.bytes.data(), code.file.bytes.size()) * 37;
  }
};

// Longer texts are cut. A larger table of locations is no table: what was read is no code.
constexpr size_t kLongestText = 4096, kLargestTable = size_t{1} << 26;

#if MTPROF_READS_FRAMES

template <typename Memory>
bool copy_text(Memory& memory, const PyObject* address, PythonText& text) {
  PyUnicodeObject copy;  // begins with the two smaller kinds of header
  auto& header = copy._base._base;
  if (address == nullptr || !memory.read(address, &header, sizeof(header))) {
    return false;
  }
  text.width = header.state.kind;
  const char* data = reinterpret_cast<const char*>(address) + sizeof(PyASCIIObject);
  if (!header.state.compact) {
    if (!memory.read(address, &copy, sizeof(copy))) {
      return false;
    }
    data = static_cast<const char*>(copy.data.any);
  } else if (!header.state.ascii) {
    data = reinterpret_cast<const char*>(address) + sizeof(PyCompactUnicodeObject);
  }
  if ((text.width != 1 && text.width != 2 && text.width != 4) || header.length < 0) {
    return false;
  }
  const size_t length = std::min(static_cast<size_t>(header.length), kLongestText);
  text.bytes.resize(length * text.width);
  return text.bytes.empty() || memory.read(data, text.bytes.data(), text.bytes.size());
}

template <typename Memory>
bool copy_bytes(Memory& memory, const PyObject* address, std::string& bytes) {
  PyVarObject header;
  if (address == nullptr || !memory.read(address, &header, sizeof(header)) || header.ob_base.ob_type != &PyBytes_Type ||
      header.ob_size < 0 || static_cast<size_t>(header.ob_size) > kLargestTable) {
    return false;
  }
  bytes.resize(static_cast<size_t>(header.ob_size));
  const char* data = reinterpret_cast<const char*>(address) + offsetof(PyBytesObject, ob_sval);
  return bytes.empty() || memory.read(data, bytes.data(), bytes.size());
}

// Whether this is the copy of a code object that lives. Of a freed one the count of references is 0, or a link of the
// allocator, which is larger than any count but those of objects that are never freed.
inline bool is_living_code(const PyObject& object) {
  constexpr uint64_t kMost = uint64_t{1} << 20;
#if PY_VERSION_HEX >= 0x030E0000
  const uint64_t references = static_cast<uint32_t>(object.ob_refcnt);
  const bool is_immortal = references >= uint64_t{1} << 30;
#elif PY_VERSION_HEX >= 0x030C0000
  const auto references = static_cast<uint64_t>(object.ob_refcnt);
  const bool is_immortal = references == 0xFFFFFFFF;
#else
  constexpr uint64_t kFrozen = 999999999;  // and as many more or fewer as are held
  const auto references = static_cast<uint64_t>(object.ob_refcnt);
  const bool is_immortal = references > kFrozen - kMost && references < kFrozen + kMost;
#endif
  return object.ob_type == &PyCode_Type && references > 0 && (references < kMost || is_immortal);
}

// Copy what is needed of the code at `address`; false where none lives there.
template <typename Memory>
bool copy_code(Memory& memory, const PyCodeObject* address, CodeFacts& facts) {
  PyCodeObject code;
  if (address == nullptr || reinterpret_cast<uintptr_t>(address) % alignof(PyCodeObject) != 0 ||
      !memory.read(address, &code, sizeof(code)) || !is_living_code(code.ob_base.ob_base)) {
    return false;
  }
  facts.first_line = code.co_firstlineno;
  facts.size = static_cast<int32_t>(code.ob_base.ob_size * static_cast<Py_ssize_t>(sizeof(_Py_CODEUNIT)));
  facts.begins = static_cast<int32_t>(code._co_firsttraceable * static_cast<int>(sizeof(_Py_CODEUNIT)));
  return copy_text(memory, code.co_filename, facts.file) && copy_text(memory, code.co_name, facts.name) &&
         copy_bytes(memory, code.co_linetable, facts.lines);
}

#else

template <typename Memory>
bool copy_code(Memory&, const PyCodeObject*, CodeFacts&) {
  return false;
}

#endif

// Each entry of the table begins with a byte of 128 or more: its kind, and how many units of code it is about. Then come
// smaller bytes: for some kinds how much the line differs from that of the entry before.
inline int32_t CodeFacts::line(int32_t instruction) const {
  constexpr int kWithoutLine = 15, kLong = 14, kWithoutColumn = 13, kOneLine = 10;
  constexpr int32_t kUnit = 2;
  int32_t now = first_line, known = first_line, until = 0;
  for (size_t at = 0; instruction >= 0 && at < lines.size() && until <= instruction;) {
    const auto head = static_cast<uint8_t>(lines[at++]);
    const int kind = (head >> 3) & 15;
    if (kind == kLong || kind == kWithoutColumn) {
      uint32_t value = 0;
      for (uint32_t shift = 0, next = 64; (next & 64) != 0 && at < lines.size() && shift < 32; shift += 6) {
        next = static_cast<uint8_t>(lines[at++]);
        value |= (next & 63) << shift;
      }
      now += (value & 1) != 0 ? -static_cast<int32_t>(value >> 1) : static_cast<int32_t>(value >> 1);
    } else if (kind >= kOneLine && kind < kWithoutColumn) {
      now += kind - kOneLine;
    }
    known = kind == kWithoutLine ? known : now;
    until += ((head & 7) + 1) * kUnit;
    while (at < lines.size() && (static_cast<uint8_t>(lines[at]) & 128) == 0) {
      ++at;
    }
  }
  return known > 0 ? known : first_line;
}

// Make room for one item more, so that the next `push_back` cannot fail.
template <typename Item>
void make_room(std::vector<Item>& items) {
  if (items.size() == items.capacity()) {
    items.reserve(items.size() * 2 + 16);
  }
}

// Codes by number. Used under the lock of its owner.
class CodeTable {
 public:
  // The number of the code at `address`; -1 where none lives there. Sets `is_held` where the address will not change its
  // meaning, because a reference to the code is held.
  template <typename Memory>
  int32_t number(Memory& memory, PyCodeObject* address, bool& is_held) {
    const auto held = held_.find(address);
    is_held = held != held_.end();
    if (is_held) {
      return held->second;
    }
    if (!copy_code(memory, address, met_)) {
      return -1;
    }
    make_room(codes_);
    const auto [found, is_new] = numbers_.try_emplace(met_, static_cast<int32_t>(codes_.size()));
    if (is_new) {
      codes_.push_back(&found->first);  // keys of an unordered_map stay where they are
    }
    if (waiting_.size() < kMostWaiting) {
      waiting_[address] = found->second;
    }
    return found->second;
  }

  // Hold a reference to a code that lives, if it was met since the last call of `forget_waiting`. The GIL must be held.
  void hold(PyCodeObject* code) {
    OwnMemory memory;
    const auto waiting = waiting_.find(code);
    if (waiting != waiting_.end() && copy_code(memory, code, met_) &&
        met_ == *codes_[static_cast<size_t>(waiting->second)] && held_.try_emplace(code, waiting->second).second) {
      Py_INCREF(code);
    }
  }

  // Hold all codes that were met, of which none is gone: `forget` is called for each that is freed.
  void hold_waiting() {
    for (const auto& [code, number] : waiting_) {
      hold(code);
    }
  }

  void forget(PyCodeObject* code) {
    waiting_.erase(code);
  }

  void forget_waiting() {
    waiting_.clear();
  }

  // Forget all codes; their references belong to the caller.
  std::unordered_map<PyCodeObject*, int32_t> release() {
    waiting_.clear();
    codes_.clear();
    numbers_.clear();
    std::unordered_map<PyCodeObject*, int32_t> held;
    held.swap(held_);
    return held;
  }

  size_t size() const {
    return codes_.size();
  }
  const CodeFacts& operator[](int32_t number) const {
    return *codes_[static_cast<size_t>(number)];
  }

 private:
  static constexpr size_t kMostWaiting = 4096;

  std::unordered_map<CodeFacts, int32_t, CodeFactsHash> numbers_;
  std::vector<const CodeFacts*> codes_;
  std::unordered_map<PyCodeObject*, int32_t> held_, waiting_;
  CodeFacts met_;  // its memory is used again
};

}  // namespace mtprof
