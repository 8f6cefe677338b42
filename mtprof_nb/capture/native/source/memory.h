// Notes what the CPU's allocator gives out and takes back while a recording asks for it.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include <cstring>
#include <typeinfo>

#include "recording.h"

namespace mtprof {

// The stack of an allocation outside any op.
inline int32_t stack_of_allocation(ThreadRecords& records) {
  const Row* row = records.running;
  const bool is_in_op = row != nullptr && row->scope != static_cast<uint8_t>(at::RecordScope::USER_SCOPE);
  Recording& recording = *records.recording;
  return is_in_op || !recording.options.with_stacks ? -1 : records.stack.read(recording.stacks, recording.options.known);
}

// Never fails: no failure of ours may reach the user's op.
inline void note_block(
    void* address, int64_t nbytes, int8_t device_type = 0, int8_t device_index = 0) {
  if (address == nullptr) {
    return;
  }
  ThreadRecords* records = locked_records(nullptr);
  if (records == nullptr) {
    return;
  }
  std::unique_lock<SpinLock> held(records->lock, std::adopt_lock);
  Recording& recording = *records->recording;
  if (!recording.options.with_memory || recording.is_full.load(std::memory_order_relaxed)) {
    return;
  }
  try {
    const int32_t stack = nbytes > 0 ? stack_of_allocation(*records) : -1;
    *records->blocks.next() =
        Block{records->clock.now(), reinterpret_cast<uint64_t>(address), nbytes,
              records->running,     stack, device_type, device_index};
    records->blocks.add();
  } catch (const std::bad_alloc&) {
    recording.end_for_want_of_memory();
  }
}

inline PyObject* note_memory(PyObject*, PyObject* arguments) {
  unsigned long long number = 0;
  long long nbytes = 0;
  if (!PyArg_ParseTuple(arguments, "KL", &number, &nbytes)) {
    return nullptr;
  }
  note_block(reinterpret_cast<void*>(number), nbytes);
  Py_RETURN_NONE;
}

// The table of virtual functions of an allocator.
inline void* table_of(const c10::Allocator* allocator) {
  return __atomic_load_n(reinterpret_cast<void* const*>(allocator), __ATOMIC_ACQUIRE);
}

inline void set_table(c10::Allocator* allocator, void* table) {
  __atomic_store_n(reinterpret_cast<void**>(allocator), table, __ATOMIC_RELEASE);
}

// A second object of the class of torch's standard allocator, which has no data: it works while the first has our table.
inline c10::Allocator* standard_twin() {
  alignas(std::max_align_t) static char twin[64] = {};
  return reinterpret_cast<c10::Allocator*>(twin);
}

// Stands before torch's allocator during a recording. Storages that Python makes do not ask for the allocator that is
// set, but for torch's standard one: where that is in use, it gets the virtual functions of this class, which has no data.
// Another one is replaced; storages refer to this object then for as long as they live: it stays.
class NotingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t nbytes) override {
    c10::DataPtr block = inner()->allocate(nbytes);
    c10::DeleterFnPtr deleter = inner()->raw_deleter();
    // A block whose context is not its address, or with a deleter of another kind, is left as it is.
    if (deleter != nullptr && block.get() == block.get_context() && block.compare_exchange_deleter(deleter, &release)) {
      note_block(block.get(), static_cast<int64_t>(nbytes));
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
    const bool is_standard = before == c10::GetDefaultCPUAllocator() &&
                             std::strcmp(typeid(*before).name(), "N3c1019DefaultCPUAllocatorE") == 0;
    c10::Allocator* found = is_standard ? standard_twin() : before;
    if (before == this || (inner() != nullptr && inner() != found)) {
      return before == this;
    }
    if (is_standard && table_of(found) == nullptr) {  // later, another thread may be about to release a block
      set_table(found, table_of(before));
    }
    inner_.store(found);
    if (is_standard) {
      set_table(before, table_of(this));
    } else {
      c10::SetCPUAllocator(this);
    }
    return true;
  }

  void remove() {
    c10::Allocator* standard = c10::GetDefaultCPUAllocator();
    if (table_of(standard) == table_of(this)) {
      set_table(standard, table_of(standard_twin()));
    } else if (c10::GetCPUAllocator() == this) {
      c10::SetCPUAllocator(inner());
    }
  }

 private:
  // Blocks have this deleter as long as they live, also after the recording: it passes them on.
  static void release(void* address) {
    note_block(address, 0);
    inner()->raw_deleter()(address);
  }

  static c10::Allocator* inner() {
    return inner_.load(std::memory_order_relaxed);
  }

  static inline std::atomic<c10::Allocator*> inner_{nullptr};
};

}  // namespace mtprof
