// Notes what the caching allocators of devices give out and take back: they report it to the state
// of a profiler, in a place that each thread has one of, and hands on to the threads of the
// backward pass.
#pragma once

#include "devices.h"
#include "../memory.h"

#if MTPROF_RECORDS_DEVICES
#include <c10/util/ThreadLocalDebugInfo.h>
#include <torch/csrc/profiler/orchestration/observer.h>
#endif

namespace mtprof {

#if MTPROF_RECORDS_DEVICES

namespace profiler = torch::profiler::impl;

// Torch takes whatever stands in that place for a state of its profiler: this is one that is
// switched off.
class DeviceMemory final : public profiler::ProfilerStateBase {
 public:
  DeviceMemory() : ProfilerStateBase(profiler::ProfilerConfig(profiler::ProfilerState::Disabled)) {}

  void reportMemoryUsage(
      void* address, int64_t nbytes, size_t, size_t, c10::Device device) override {
    if (!device.is_cpu()) {
      note_block(address, std::max<int64_t>(nbytes, 0), static_cast<int8_t>(device.type()),
                 std::max<int8_t>(static_cast<int8_t>(device.index()), 0));
    }
  }
  // The CPU's blocks are noted elsewhere: the allocator would keep a table of them.
  bool memoryProfilingEnabled() const override {
    return false;
  }
  profiler::ActiveProfilerType profilerType() override {
    return profiler::ActiveProfilerType::NONE;
  }

  // The one of the process, which threads refer to as long as they live.
  static const std::shared_ptr<c10::DebugInfoBase>& instance() {
    static const auto* const found =
        new std::shared_ptr<c10::DebugInfoBase>(std::make_shared<DeviceMemory>());
    return *found;
  }

  // Whether reports of this thread reach us from now on, and did not before; false where somebody
  // else has the place.
  static bool enter() {
    if (c10::ThreadLocalDebugInfo::get(c10::DebugInfoKind::PROFILER_STATE) != nullptr) {
      return false;
    }
    c10::ThreadLocalDebugInfo::_push(c10::DebugInfoKind::PROFILER_STATE, instance());
    return true;
  }

  // Whether reports of this thread do not reach us from now on, and did before.
  static bool leave() {
    if (c10::ThreadLocalDebugInfo::get(c10::DebugInfoKind::PROFILER_STATE) != instance().get()) {
      return false;
    }
    try {
      c10::ThreadLocalDebugInfo::_pop(c10::DebugInfoKind::PROFILER_STATE);
      return true;
    } catch (const std::exception&) {
      // Something else was put above it: it stays, and does nothing while nothing is recorded.
      return false;
    }
  }
};

// How many threads have it beyond an op. Each must leave it itself, before torch's profiler starts
// there: that would take it for another profiler.
inline std::atomic<int>& threads_with_memory() {
  static std::atomic<int> found{0};
  return found;
}

// Whether the own thread has it beyond an op.
struct OwnPlace {
  bool is_there = false;
  void set(bool is_in) {
    threads_with_memory() += static_cast<int>(is_in) - static_cast<int>(is_there);
    is_there = is_in;
  }
  ~OwnPlace() {
    set(false);
  }
};

inline OwnPlace& own_place() {
  static thread_local OwnPlace found;
  return found;
}

inline void enter_memory(bool is_wanted) {
  if (is_wanted && DeviceMemory::enter()) {
    own_place().set(true);
  }
}

inline void leave_memory() {
  if (DeviceMemory::leave()) {
    own_place().set(false);
  }
}

// On the thread of an op that begins: only until it ends, for no other thread could put an end to
// it. The thread that started the recording, and those of its backward pass, have it all the time.
inline void enter_memory_of_op(bool is_wanted, Row& row) {
  const bool is_op = row.scope != static_cast<uint8_t>(at::RecordScope::USER_SCOPE);
  if (is_wanted && is_op && DeviceMemory::enter()) {
    row.flags |= kHasMemory;
  }
}

inline void leave_memory_of_op(const Row& row) {
  if ((row.flags & kHasMemory) != 0) {
    DeviceMemory::leave();
  }
}

#else

inline int threads_with_memory() {
  return 0;
}
inline void enter_memory(bool) {}
inline void leave_memory() {}
inline void enter_memory_of_op(bool, Row&) {}
inline void leave_memory_of_op(const Row&) {}

#endif

// Torch's own profiler needs the place: before it starts on this thread we leave it, and after it
// has ended we return. Returns whether any thread has it still.
inline PyObject* lend_memory(PyObject*, PyObject* is_lent) {
  State& process = state();
  if (is_lent == Py_True) {
    leave_memory();
  } else if (process.generation.load() != 0) {
    std::lock_guard<std::mutex> held(process.mutex);
    enter_memory(process.recording != nullptr && process.recording->options.with_device_memory);
  }
  return PyBool_FromLong(threads_with_memory() > 0);
}

}  // namespace mtprof
