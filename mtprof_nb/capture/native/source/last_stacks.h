// The last stack of each thread: only frames that differ from it are looked up.
#pragma once

#include <algorithm>
#include <vector>

#include "stacks.h"

namespace mtprof {

// A frame inside a node, by the address of its code.
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

// Nodes that were met, by addresses of codes that are held: a look-up takes no lock.
class NodeCache {
 public:
  void reset() {
    slots_ = std::vector<Slot>();
    used_ = 0;
  }

  template <typename Memory>
  int32_t node(StackTree& tree, Memory& memory, const NodeKey& key, bool& is_held) {
    make_room_for_one();
    Slot& slot = slot_of(key);
    if (slot.is_used) {
      is_held = true;
      return slot.node;
    }
    const int32_t found = tree.node(memory, key.parent, key.frame, is_held);
    if (is_held && found != StackTree::kUnreadable) {
      slot = {key, found, true};
      ++used_;
    }
    return found;
  }

 private:
  struct Slot {
    NodeKey key{-1, {nullptr, nullptr, -1}};
    int32_t node = -1;
    bool is_used = false;
  };
  static constexpr size_t kFirstSize = 32;
  static constexpr size_t kLargestSize = 1 << 16;

  // The slot of this key, or the free one where it belongs: there is always one.
  Slot& slot_of(const NodeKey& key) {
    const size_t mask = slots_.size() - 1;
    for (size_t at = key.hash() & mask;; at = (at + 1) & mask) {
      if (!slots_[at].is_used || slots_[at].key == key) {
        return slots_[at];
      }
    }
  }

  // Keep half of the slots free, and one more can be used.
  void make_room_for_one() {
    if ((used_ + 1) * 2 <= slots_.size()) {
      return;
    }
    if (slots_.size() >= kLargestSize) {  // stacks that hardly repeat: start again, and stay small
      reset();
    }
    std::vector<Slot> before(slots_.empty() ? kFirstSize : slots_.size() * 2);
    before.swap(slots_);
    for (const Slot& slot : before) {
      if (slot.is_used) {
        slot_of(slot.key) = slot;
      }
    }
  }

  std::vector<Slot> slots_;
  size_t used_ = 0;
};

// The last stack of one thread.
class LastStack {
 public:
  void reset() {
    *this = LastStack();
  }

  // To be filled with the frames as they are now, innermost first.
  std::vector<FramePosition>& frames() {
    return now_;
  }

  // The node of `frames`; -1 for none, `StackTree::kUnreadable` where they are no stack.
  template <typename Memory>
  int32_t node(StackTree& tree, NodeCache& cache, Memory& memory) {
    const size_t count = now_.size();
    const size_t most = std::min(count, trusted_);
    size_t same = 0;
    while (same < most && now_[count - 1 - same] == last_[last_.size() - 1 - same]) {
      ++same;
    }
    trusted_ = 0;  // if memory runs out
    nodes_.resize(count);
    size_t trusted = same;
    for (size_t depth = same; depth < count; ++depth) {
      bool is_held = false;
      const NodeKey key{depth == 0 ? -1 : nodes_[depth - 1], now_[count - 1 - depth]};
      nodes_[depth] = cache.node(tree, memory, key, is_held);
      if (nodes_[depth] == StackTree::kUnreadable) {
        return StackTree::kUnreadable;
      }
      trusted += is_held && trusted == depth;
    }
    last_.swap(now_);
    trusted_ = trusted;
    return count == 0 ? -1 : nodes_[count - 1];
  }

 private:
  std::vector<FramePosition> now_, last_;  // innermost first
  std::vector<int32_t> nodes_;             // outermost first
  size_t trusted_ = 0;                     // so many outermost frames of the last stack have codes that are held
};

// The stack of the calling thread, which must be the owner.
class ThreadStack {
 public:
  void reset() {
    last_.reset();
    cache_.reset();
  }

  int32_t read(StackTree& tree, const KnownCode& known) {
    OwnMemory memory;
    walk(PyGILState_GetThisThreadState(), known, last_.frames());
    return std::max(last_.node(tree, cache_, memory), -1);
  }

 private:
  LastStack last_;
  NodeCache cache_;
};

}  // namespace mtprof
