// Notes what the CPU's allocator gives out and takes back while a recording asks for it.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include "recording.h"

namespace mtprof {

inline void note_block(void* address, int64_t nbytes) {
  if (address == nullptr) {
    return;
  }
  ThreadRecords* records = locked_records();
  if (records == nullptr) {
    return;
  }
  std::unique_lock<SpinLock> held(records->lock, std::adopt_lock);
  const Recording& recording = *records->recording;
  if (!recording.options.with_memory || recording.is_full.load(std::memory_order_relaxed)) {
    return;
  }
  Row* row = records->running;
  *records->blocks.add() = Block{records->clock.now(), reinterpret_cast<uint64_t>(address), nbytes, row};
}

// Stands before torch's allocator during a recording. Storages refer to it for as long as they live: it stays.
class NotingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t nbytes) override {
    c10::DataPtr block = inner()->allocate(nbytes);
    c10::DeleterFnPtr deleter = inner()->raw_deleter();
    // A block whose context is not its address, or with a deleter of another kind, is left as it is.
    if (deleter != nullptr && block.get() == block.get_context() && block.compare_exchange_deleter(deleter, &release)) {
      note(block.get(), static_cast<int64_t>(nbytes));
    }
    return block;
  }

  c10::DeleterFnPtr raw_deleter() const override {
    return inner()->raw_deleter() == nullptr ? nullptr : &release;
  }

  bool is_simple_data_ptr(const c10::DataPtr& block) const override {
    return inner()->is_simple_data_ptr(block);
  }

  void copy_data(void* to, const void* from, size_t nbytes) const override {
    inner()->copy_data(to, from, nbytes);
  }

  static NotingAllocator& instance() {
    static NotingAllocator* const found = new NotingAllocator();
    return *found;
  }

  // False where the program has another allocator than in an earlier recording: blocks of then go back to that one, so
  // there is one for all.
  bool install() {
    c10::Allocator* before = c10::GetCPUAllocator();
    if (before != this && (inner() == nullptr || inner() == before)) {
      inner_.store(before);
      c10::SetCPUAllocator(this);
    }
    return c10::GetCPUAllocator() == this;
  }

  void remove() {
    if (c10::GetCPUAllocator() == this) {
      c10::SetCPUAllocator(inner());
    }
  }

 private:
  // Blocks have this deleter as long as they live, also after the recording: it passes them on.
  static void release(void* address) {
    note(address, 0);
    instance().inner()->raw_deleter()(address);
  }

  static void note(void* address, int64_t nbytes) {
    try {
      note_block(address, nbytes);
    } catch (...) {  // no failure of ours may reach the user's op
    }
  }

  c10::Allocator* inner() const {
    return inner_.load(std::memory_order_relaxed);
  }

  std::atomic<c10::Allocator*> inner_{nullptr};
};

}  // namespace mtprof
