// The recording that is active, and how threads take part in it.
#pragma once

#include <pthread.h>

#include <atomic>
#include <limits>
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
  bool with_device_memory = false;
  bool with_ids = false;
  int64_t max_events = 0;
  KnownCode known;
};

// The records of one thread, taken out of it.
struct TakenThread {
  int64_t native_id;
  uint64_t torch_id;
  uint32_t pthread_id;
  int64_t joined;
  int64_t dropped;
  Chunks<Row> rows;
  Chunks<Block> blocks;
  Chunks<CallId> ids;
  KeptTexts values_of_rows;
};

// Tables of one recording, and the threads that take part.
class Recording {
 public:
  explicit Recording(const Options& chosen) : options(chosen) {}

  const Options options;
  // Rows that threads have told of. They tell late, so that some rows more are recorded, which `stop` leaves out.
  std::atomic<int64_t> told{0};
  std::atomic<bool> is_full{false};
  // Whether it is full because there was not enough memory.
  std::atomic<bool> is_out_of_memory{false};
  // Events that were left out on threads that did not take part; guarded by the mutex of `State`.
  int64_t dropped = 0;
  Interner names, forms, values, addresses, extras;
  StackTree stacks;
  std::vector<ThreadRecords*> threads;  // guarded by the mutex of `State`
  std::vector<TakenThread> taken;       // has room for all of them, so that `stop` needs no memory to end a recording
  // Made by the first reading while it records; guarded by the mutex of `State`.
  std::shared_ptr<LiveReader> live;

  // Note that a row of this moment, or later ones, may be missing.
  void misses_from(int64_t moment) {
    int64_t known = complete_until.load();
    while (moment < known && !complete_until.compare_exchange_weak(known, moment)) {
    }
  }

  // Count an op that is left out, unless it is a helper of torch's. A block of memory has no name.
  void leave_out(const char* op, int64_t& dropped) {
    if (op != nullptr && !is_helper(op) && dropped++ == 0) {
      misses_from(now_ns());
    }
  }

  // Record no more: what follows could only be recorded in part.
  void end_for_want_of_memory() {
    is_out_of_memory.store(true);
    is_full.store(true, std::memory_order_relaxed);
    misses_from(now_ns());
  }

  // Until when nothing is missing.
  std::atomic<int64_t> complete_until{std::numeric_limits<int64_t>::max()};
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

// The number by which CUPTI calls this thread: the low half of that of the system's library.
inline uint32_t low_pthread_id() {
  void* const self = reinterpret_cast<void*>(pthread_self());
  return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(self));
}

// Call under the lock after a change: true for the one change after which nobody refers to `records`.
inline bool is_unused(const ThreadRecords& records) {
  return records.is_orphan && records.open == 0 && records.recording == nullptr;
}

// The records of this thread; nullptr before it takes part in a recording, and when it ends. Looked up for every op: the
// model of access makes that one instruction, and needs no memory at a thread's first look.
#if defined(__GNUC__) && defined(__linux__)
#define MTPROF_QUICK __attribute__((tls_model("initial-exec")))
#else
#define MTPROF_QUICK
#endif
MTPROF_QUICK inline thread_local ThreadRecords* own_records = nullptr;
MTPROF_QUICK inline thread_local bool thread_has_ended = false;

// Gives the records of a thread back when it ends. A key of the system's calls it: where memory is short, a thread that
// cannot register a destructor of C++ ends the process.
inline void end_thread(void* ended) {
  thread_has_ended = true;
  own_records = nullptr;
  auto* records = static_cast<ThreadRecords*>(ended);
  records->contexts.release();
  records->lock.lock();
  records->release_caches();
  records->is_orphan = true;
  const bool is_last = is_unused(*records);
  records->lock.unlock();
  if (is_last) {
    delete records;
  }
}

inline pthread_key_t& key_of_threads() {
  static pthread_key_t found;
  return found;
}

inline void make_own_records() {
  auto made = std::make_unique<ThreadRecords>();
  made->native_id = native_thread_id();
  made->torch_id = at::RecordFunction::currentThreadId();
  made->pthread_id = low_pthread_id();
  if (pthread_setspecific(key_of_threads(), made.get()) != 0) {
    throw std::bad_alloc();
  }
  own_records = made.release();
}

// The records of the calling thread in the recording of `generation`, locked; nullptr where that has ended, or takes no
// more threads. `op` is the name of the op that then is left out; nullptr for a block of memory.
inline ThreadRecords* join(uint64_t generation, const char* op) {
  State& process = state();
  std::lock_guard<std::mutex> held(process.mutex);
  if (process.generation.load(std::memory_order_relaxed) != generation || thread_has_ended) {
    return nullptr;
  }
  Recording& recording = *process.recording;
  if (!recording.is_full.load(std::memory_order_relaxed)) {
    try {
      make_room(recording.threads);
      recording.taken.reserve(recording.threads.capacity());
      if (own_records == nullptr) {
        make_own_records();
      }
    } catch (const std::bad_alloc&) {
      recording.end_for_want_of_memory();
    }
  }
  if (recording.is_full.load(std::memory_order_relaxed)) {
    recording.leave_out(op, recording.dropped);
    return nullptr;
  }
  ThreadRecords* records = own_records;
  records->lock.lock();
  records->recording = &recording;
  records->generation = generation;
  records->forget_rows();
  records->running = nullptr;
  records->joined = now_ns();
  records->untold = records->dropped = 0;
  records->optimizer_steps = 0;
  recording.threads.push_back(records);
  return records;
}

// The records of the calling thread, locked; nullptr where nothing is recorded.
inline ThreadRecords* locked_records(const char* op) {
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
  return join(generation, op);
}

// Count a row of this thread that is being added; after `max_events` of all threads, no more are.
inline void tell(ThreadRecords& records) {
  constexpr int64_t kMany = 64;
  if (++records.untold >= kMany) {
    Recording& recording = *records.recording;
    if (recording.told.fetch_add(records.untold) + records.untold > recording.options.max_events) {
      recording.is_full.store(true, std::memory_order_relaxed);
    }
    records.untold = 0;
  }
}

}  // namespace mtprof
