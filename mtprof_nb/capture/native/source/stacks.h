// Python stacks as numbers: a stack is a node of a tree that all threads share.
#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "python_frames.h"

namespace mtprof {

// Whether the interpreter is about to end.
inline bool is_finalizing() {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsFinalizing() != 0;
#else
  return _Py_IsFinalizing() != 0;
#endif
}

struct StackNode {
  int32_t parent;
  int32_t code;
  int32_t instruction;
  int32_t module;
};

struct NodeKey {
  int32_t parent;
  FramePosition frame;

  bool operator==(const NodeKey& other) const {
    return parent == other.parent && frame == other.frame;
  }

  size_t hash() const {
    uint64_t mixed = reinterpret_cast<uintptr_t>(frame.code) * 0x9E3779B97F4A7C15ull;
    mixed ^= (static_cast<uint64_t>(static_cast<uint32_t>(frame.instruction)) << 32) | static_cast<uint32_t>(parent);
    mixed *= 0xFF51AFD7ED558CCDull;
    mixed ^= reinterpret_cast<uintptr_t>(frame.module);
    mixed *= 0xC4CEB9FE1A85EC53ull;
    return mixed ^ (mixed >> 31);
  }
};

struct NodeKeyHash {
  size_t operator()(const NodeKey& key) const {
    return key.hash();
  }
};

// A module instance that was called. Only its address is kept, so that it may be freed.
struct CalledModule {
  const void* address;
  PyTypeObject* type;
};

class StackTree {
 public:
  // Keep these codes and modules alive or known. Takes the GIL: no lock may be held.
  void learn(const std::vector<FramePosition>& frames) {
    if (is_finalizing()) {
      return;  // who asks for the GIL now never gets it
    }
    const PyGILState_STATE state = PyGILState_Ensure();
    {
      std::lock_guard<std::mutex> held(mutex_);
      for (const FramePosition& frame : frames) {
        learn(frame);
      }
    }
    PyGILState_Release(state);
  }

  bool knows(const std::vector<FramePosition>& frames) {
    std::lock_guard<std::mutex> held(mutex_);
    for (const FramePosition& frame : frames) {
      if (!code_numbers_.count(frame.code) || (frame.module != nullptr && !module_numbers_.count(frame.module))) {
        return false;
      }
    }
    return true;
  }

  // The node of `key`, or -1 if its code or module is not known.
  int32_t node(const NodeKey& key) {
    std::lock_guard<std::mutex> held(mutex_);
    auto found = numbers_.find(key);
    if (found != numbers_.end()) {
      return found->second;
    }
    auto code = code_numbers_.find(key.frame.code);
    auto module = key.frame.module == nullptr ? module_numbers_.end() : module_numbers_.find(key.frame.module);
    if (code == code_numbers_.end() || (key.frame.module != nullptr && module == module_numbers_.end())) {
      return -1;
    }
    const int32_t number = static_cast<int32_t>(nodes_.size());
    nodes_.push_back({key.parent, code->second, key.frame.instruction,
                      module == module_numbers_.end() ? -1 : module->second});
    numbers_.emplace(key, number);
    return number;
  }

  // Release codes and types. The GIL must be held. Nothing is learnt from now on.
  void close() {
    std::vector<PyObject*> kept;
    {
      std::lock_guard<std::mutex> held(mutex_);
      is_closed_ = true;
      for (PyCodeObject* code : codes_) {
        kept.push_back(reinterpret_cast<PyObject*>(code));
      }
      for (const CalledModule& module : modules_) {
        kept.push_back(reinterpret_cast<PyObject*>(module.type));
      }
      codes_.clear();
      modules_.clear();
      code_numbers_.clear();
      module_numbers_.clear();
      numbers_.clear();
      nodes_.clear();
    }
    for (PyObject* object : kept) {
      Py_DECREF(object);
    }
  }

  const std::vector<StackNode>& nodes() const {
    return nodes_;
  }
  const std::vector<PyCodeObject*>& codes() const {
    return codes_;
  }
  const std::vector<CalledModule>& modules() const {
    return modules_;
  }
  std::mutex& mutex() {
    return mutex_;
  }

 private:
  void learn(const FramePosition& frame) {
    if (is_closed_) {
      return;
    }
    if (code_numbers_.try_emplace(frame.code, static_cast<int32_t>(codes_.size())).second) {
      Py_INCREF(frame.code);
      codes_.push_back(frame.code);
    }
    if (frame.module == nullptr) {
      return;
    }
    if (module_numbers_.try_emplace(frame.module, static_cast<int32_t>(modules_.size())).second) {
      PyTypeObject* type = Py_TYPE(static_cast<PyObject*>(const_cast<void*>(frame.module)));
      Py_INCREF(type);
      modules_.push_back({frame.module, type});
    }
  }

  std::mutex mutex_;
  bool is_closed_ = false;
  std::vector<StackNode> nodes_;
  std::unordered_map<NodeKey, int32_t, NodeKeyHash> numbers_;
  std::vector<PyCodeObject*> codes_;
  std::unordered_map<PyCodeObject*, int32_t> code_numbers_;
  std::vector<CalledModule> modules_;
  std::unordered_map<const void*, int32_t> module_numbers_;
};

// The last stack of one thread, and the nodes that the thread has met.
class ThreadStack {
 public:
  void reset() {
    last_.clear();
    nodes_.clear();
    slots_.assign(kFirstSize, Slot{});
    used_ = 0;
  }

  // Read the frames of the calling thread, which must be the owner.
  void read(const KnownCode& known) {
    walk(known, now_);
  }

  const std::vector<FramePosition>& frames() const {
    return now_;
  }

  // The node of the frames that were read last; -1 for none. Sets `is_unknown` where `learn` is needed first.
  int32_t node(StackTree& tree, bool& is_unknown) {
    const size_t count = now_.size();
    const size_t most = count < last_.size() ? count : last_.size();
    size_t same = 0;
    while (same < most && now_[count - 1 - same] == last_[last_.size() - 1 - same]) {
      ++same;
    }
    nodes_.resize(count);
    for (size_t depth = same; depth < count; ++depth) {
      const NodeKey key{depth == 0 ? -1 : nodes_[depth - 1], now_[count - 1 - depth]};
      const int32_t found = known(tree, key);
      if (found < 0) {
        is_unknown = true;
        last_.clear();
        return -1;
      }
      nodes_[depth] = found;
    }
    last_.swap(now_);
    return count == 0 ? -1 : nodes_[count - 1];
  }

 private:
  struct Slot {
    NodeKey key{-1, {nullptr, nullptr, -1}};
    int32_t node = -1;
  };
  static constexpr size_t kFirstSize = 512;

  int32_t known(StackTree& tree, const NodeKey& key) {
    Slot& slot = slot_of(key);
    if (slot.node >= 0) {
      return slot.node;
    }
    const int32_t found = tree.node(key);
    if (found >= 0) {
      slot = {key, found};
      grow_when_full();
    }
    return found;
  }

  Slot& slot_of(const NodeKey& key) {
    const size_t mask = slots_.size() - 1;
    for (size_t at = key.hash() & mask;; at = (at + 1) & mask) {
      if (slots_[at].node < 0 || slots_[at].key == key) {
        return slots_[at];
      }
    }
  }

  void grow_when_full() {
    if (++used_ * 2 < slots_.size()) {
      return;
    }
    std::vector<Slot> before(slots_.size() * 2);
    before.swap(slots_);
    for (const Slot& slot : before) {
      if (slot.node >= 0) {
        slot_of(slot.key) = slot;
      }
    }
  }

  std::vector<FramePosition> now_, last_;  // innermost first
  std::vector<int32_t> nodes_;             // outermost first
  std::vector<Slot> slots_;
  size_t used_ = 0;
};

}  // namespace mtprof
