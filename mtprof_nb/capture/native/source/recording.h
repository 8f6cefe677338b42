// The recording that is active, and how threads take part in it.
#pragma once

#include <atomic>
#include <mutex>
#include <vector>

#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <ATen/record_function.h>

#include "records.h"

namespace mtprof {

class LiveReader;

struct Options {
  bool with_inputs = false;
  bool with_stacks = false;
  bool with_memory = false;
  bool with_ids = false;
  int64_t max_events = 0;
  KnownCode known;
};

// Tables of one recording, and the threads that take part.
class Recording {
 public:
  explicit Recording(const Options& chosen) : options(chosen) {}

  const Options options;
  // Rows that threads have told of. They tell late, so that some rows more are recorded, which `stop` leaves out.
  std::atomic<int64_t> told{0};
  std::atomic<bool> is_full{false};
  Interner names, inputs, addresses, extras;
  StackTree stacks;
  std::vector<ThreadRecords*> threads;  // guarded by the mutex of `State`
  // Made by the first reading while it records; guarded by the mutex of `State`.
  std::shared_ptr<LiveReader> live;
  // How many threads are waiting for the GIL to make code known; the recording is not deleted meanwhile.
  std::atomic<int> learners{0};
};

// Of the process; never destroyed, because memory that was allocated during a recording may be released at any time.
struct State {
  std::mutex mutex;
  // Changes with each start and stop; 0 while nothing is recorded.
  std::atomic<uint64_t> generation{0};
  uint64_t last_generation = 0;
  Recording* recording = nullptr;
  at::CallbackHandle handle = at::INVALID_CALLBACK_HANDLE;
  // The process that records, and in a child that it forked, the handle of a callback that is still installed there.
  int64_t process_id = 0;
  at::CallbackHandle left = at::INVALID_CALLBACK_HANDLE;
};

inline State& state() {
  static State* const found = new State();
  return *found;
}

inline int64_t native_thread_id() {
#if defined(__linux__)
  return static_cast<int64_t>(syscall(SYS_gettid));
#elif defined(__APPLE__)
  uint64_t found = 0;
  pthread_threadid_np(nullptr, &found);
  return static_cast<int64_t>(found);
#else
  return static_cast<int64_t>(PyThread_get_thread_native_id());
#endif
}

// Call under the lock after a change: true for the one change after which nobody refers to `records`.
inline bool is_unused(const ThreadRecords& records) {
  return records.is_orphan && records.open == 0 && records.recording == nullptr;
}

// The records of this thread; nullptr before it takes part in a recording, and when it ends. Looked up for every op: the
// model of access makes that one instruction.
#if defined(__GNUC__) && defined(__linux__)
__attribute__((tls_model("initial-exec")))
#endif
inline thread_local ThreadRecords* own_records = nullptr;
inline thread_local bool thread_has_ended = false;

// Gives the records of a thread back when it ends.
struct ThreadEnd {
  ~ThreadEnd() {
    thread_has_ended = true;
    ThreadRecords* records = own_records;
    own_records = nullptr;
    if (records == nullptr) {
      return;
    }
    records->lock.lock();
    records->is_orphan = true;
    const bool is_last = is_unused(*records);
    records->lock.unlock();
    if (is_last) {
      delete records;
    }
  }
};

inline thread_local ThreadEnd thread_end;

// The records of the calling thread in the recording of `generation`, locked; nullptr where that has ended.
inline ThreadRecords* join(uint64_t generation) {
  State& process = state();
  std::lock_guard<std::mutex> held(process.mutex);
  if (process.generation.load(std::memory_order_relaxed) != generation) {
    return nullptr;
  }
  ThreadRecords*& records = own_records;
  if (records == nullptr) {
    if (thread_has_ended) {
      return nullptr;
    }
    (void)&thread_end;  // from its first use on, its destructor runs at the end of the thread
    records = new ThreadRecords();
    records->native_id = native_thread_id();
    records->torch_id = at::RecordFunction::currentThreadId();
  }
  records->lock.lock();
  records->recording = process.recording;
  records->generation = generation;
  records->rows = Chunks<Row>();
  records->blocks = Chunks<Block>();
  records->ids = Chunks<CallId>();
  records->running = nullptr;
  records->untold = records->dropped = 0;
  records->optimizer_steps = 0;
  records->names.reset();
  records->inputs.reset();
  records->addresses.reset();
  records->stack.reset();
  process.recording->threads.push_back(records);
  return records;
}

// The records of the calling thread, locked; nullptr where nothing is recorded.
inline ThreadRecords* locked_records() {
  const uint64_t generation = state().generation.load(std::memory_order_acquire);
  if (generation == 0) {
    return nullptr;
  }
  ThreadRecords* records = own_records;
  if (records != nullptr) {
    if (records->is_reading) {
      return nullptr;
    }
    records->lock.lock();
    if (records->generation == generation && records->recording != nullptr) {
      return records;
    }
    records->lock.unlock();
  }
  return join(generation);
}

// Whether this thread may add a row; counts those that it may not add.
inline bool may_add(ThreadRecords& records) {
  constexpr int64_t kMany = 64;
  Recording& recording = *records.recording;
  if (recording.is_full.load(std::memory_order_relaxed)) {
    ++records.dropped;
    return false;
  }
  if (++records.untold >= kMany) {
    if (recording.told.fetch_add(records.untold) + records.untold > recording.options.max_events) {
      recording.is_full.store(true, std::memory_order_relaxed);
    }
    records.untold = 0;
  }
  return true;
}

}  // namespace mtprof
