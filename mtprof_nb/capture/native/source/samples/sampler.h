// Samples of the Python stacks of all threads, taken every few milliseconds at random moments.
//
// A thread of its own reads them where the threads are, without their help: see `frame_reader.h`.
#pragma once

#ifdef __linux__
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#endif
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <random>
#include <thread>
#include <unordered_map>

#include "frame_reader.h"
#include "../readout.h"
#include "thread_states.h"

#if MTPROF_READS_FRAMES && defined(__linux__)
#define MTPROF_SAMPLES 1
#else
#define MTPROF_SAMPLES 0
#endif

namespace mtprof {

#if MTPROF_SAMPLES

struct SampledThread {
  int64_t asked;
  int64_t taken;
  int64_t native_id;
  int64_t awake;
  int64_t computed;
  int32_t node;
  int8_t is_waiting;
  int8_t certainty;
};

class Sampler {
 public:
  Sampler(int64_t period_ns, const KnownCode& known, CheckedMemory::Way way)
      : process(getpid()), period_ns_(period_ns), known_(known), memory_(way), random_(std::random_device{}()) {}

  const pid_t process;

  bool can_read() const {
    return memory_.way() != CheckedMemory::kNone;
  }

  void start() {
    interpreter_ = PyInterpreterState_Get();
    thread_ = std::thread([this] { run(); });
    tree_.start_holding(known_, false);
  }

  // Ends the threads. The GIL must not be held.
  void stop() {
    ended_by_ = static_cast<int64_t>(syscall(SYS_gettid));
    asleep_at_end_ = ThreadStates::own_sleep(ended_by_);
    {
      std::lock_guard<std::mutex> held(mutex_);
      is_stopping_ = true;
    }
    changed_.notify_all();
    thread_.join();
    tree_.stop_holding();
  }

  void read_out(const Owned& found) {
    const size_t count = rows_.size();
    Column<int64_t> asked(count), taken(count), thread(count), awake(count), computed(count);
    Column<int32_t> node(count);
    Column<int8_t> is_waiting(count), certainty(count);
    for (size_t position = 0; position < count; ++position) {
      const SampledThread& row = rows_[position];
      asked[position] = row.asked;
      taken[position] = row.taken;
      thread[position] = row.native_id;
      awake[position] = row.awake;
      computed[position] = row.computed;
      node[position] = row.node;
      is_waiting[position] = row.is_waiting;
      certainty[position] = row.certainty;
    }
    asked.into(found, "asked");
    taken.into(found, "taken");
    thread.into(found, "thread");
    awake.into(found, "awake");
    computed.into(found, "computed");
    node.into(found, "node");
    is_waiting.into(found, "is_waiting");
    certainty.into(found, "certainty");
    set_item(found, "ended_by", Owned(PyLong_FromLongLong(ended_by_)));
    set_item(found, "asleep_at_end", Owned(PyLong_FromLongLong(asleep_at_end_)));
    set_item(found, "cut", Owned(PyLong_FromLongLong(cut_)));
    set_item(found, "lost", Owned(PyLong_FromLongLong(lost_)));
    read_stacks(tree_, found);
  }

  void close() {
    tree_.close();
  }

 private:
  // After so many rows samples become ten times rarer, so that a recording of hours stays small.
  static constexpr size_t kManyRows = 400000;
  // For so many times the length of a sample none is taken after it: of thousands of threads, samples are rarer.
  static constexpr int kRest = 19;
  static constexpr int kAttempts = 4;
  static constexpr int kRounds = 256;

  struct Known {
    int64_t native_id = 0;
    ReadThread where;
    LastStack stack;
    ThreadTimes times;
    ThreadStates::State state = ThreadStates::kUnknown;
    int32_t node = -1;
    int8_t certainty = kSure;
    bool is_cut = false;
    int64_t round = 0;
  };

  void run() {
    be_on_time();
    while (wait_for_moment()) {
      const int64_t began = computed_ns();
      try {
        look_at_all();
      } catch (const std::bad_alloc&) {
        ++lost_;
      }
      earliest_ = std::chrono::steady_clock::now() + std::chrono::nanoseconds(computed_ns() - began) * kRest;
    }
  }

  static int64_t computed_ns() {
    timespec found{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &found);
    return found.tv_sec * 1000000000LL + found.tv_nsec;
  }

  // Let the system wake this thread when it asks for it, and not some time later. All of it may be refused.
  static void be_on_time() {
    prctl(PR_SET_TIMERSLACK, 1UL);
#ifdef SYS_sched_setattr
    // From Linux 6.12 on, a thread with a short slice need not wait for the slice of another to end.
    struct {
      uint32_t size, policy;
      uint64_t flags;
      int32_t nice;
      uint32_t priority;
      uint64_t runtime, deadline, period;
    } attributes = {48, 0, 0, getpriority(PRIO_PROCESS, 0), 0, 100000, 0, 0};
    syscall(SYS_sched_setattr, 0, &attributes, 0);
#endif
  }

  // False at the end. Moments are random and do not depend on the program, so that they fall on all of it alike.
  bool wait_for_moment() {
    const auto after = std::max(std::chrono::steady_clock::now(), earliest_);
    while (moment_ <= after) {
      const double period = static_cast<double>(period_ns_) * (rows_.size() > kManyRows ? 10.0 : 1.0);
      const double length = period * std::uniform_real_distribution<double>(0.5, 1.5)(random_);
      moment_ += std::chrono::nanoseconds(static_cast<int64_t>(length));
    }
    std::unique_lock<std::mutex> held(mutex_);
    return !changed_.wait_until(held, moment_, [this] { return is_stopping_; });
  }

  void look_at_all() {
    const int64_t asked = now_ns();  // to read memory waits for a thread that forks: it is there until then
    reader_.threads(interpreter_, found_);
    // The main thread comes first: it is likely the one that runs.
    std::stable_partition(found_.begin(), found_.end(),
                          [this](const FoundThread& one) { return one.native_id == process; });
    ++round_;
    for (const FoundThread& one : found_) {
      look_at(one, asked);
    }
    if (round_ % kRounds == 0) {
      forget_ended();
    }
  }

  void look_at(const FoundThread& found, int64_t asked) {
    Known& thread = threads_[found.state];
    if (thread.native_id != found.native_id) {
      thread = Known{};
      thread.native_id = found.native_id;
    }
    thread.round = round_;
    const int64_t computed = ThreadStates::computed(found.native_id);
    // A thread that has not computed since is where it was.
    const bool has_run = thread.node < 0 || computed < 0 || computed != thread.times.computed;
    if (has_run && !read(found, thread)) {
      return;
    }
    const int64_t taken = now_ns();
    const bool has_moved = has_run && ThreadStates::computed(found.native_id) != computed;
    if (has_run || thread.state != ThreadStates::kAsleep) {  // one that slept and has not computed since sleeps
      thread.state = states_.state(found.native_id, thread.times);
    }
    if (has_run) {
      thread.times = states_.times(found.native_id);
      // Read late, if this thread had to wait for a processor: then the other one was not awake for longer than it was.
      thread.times.awake -= thread.times.awake < 0 ? 0 : std::min(now_ns() - taken, thread.times.awake);
      if (has_moved) {
        thread.state = ThreadStates::kAwake;  // it may have fallen asleep since
      }
    }
    if (thread.state != ThreadStates::kUnknown) {
      const auto certainty = has_run ? thread.certainty : static_cast<int8_t>(kSure);
      rows_.push_back({asked, taken, found.native_id, thread.times.awake, thread.times.computed, thread.node,
                       thread.state, certainty});
      cut_ += thread.is_cut;
    }
  }

  bool read(const FoundThread& found, Known& thread) {
    thread.node = -1;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      const FrameReader::Result result =
          reader_.read(found.state, interpreter_, known_, thread.where, thread.stack.frames());
      if (result == FrameReader::kNothing) {
        return false;
      }
      const int32_t node = result == FrameReader::kStack ? thread.stack.node(tree_, cache_, memory_) : -1;
      if (node >= 0) {
        thread.node = node;
        thread.certainty = reader_.certainty;
        thread.is_cut = reader_.is_cut;
        return true;
      }
    }
    ++lost_;
    return false;
  }

  void forget_ended() {
    for (auto one = threads_.begin(); one != threads_.end();) {
      one = one->second.round == round_ ? std::next(one) : threads_.erase(one);
    }
  }

  const int64_t period_ns_;
  const KnownCode known_;
  CheckedMemory memory_;
  FrameReader reader_{memory_};
  std::mt19937_64 random_;
  PyInterpreterState* interpreter_ = nullptr;
  std::thread thread_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_stopping_ = false;
  // The thread that ended the sampler, and for how long it had slept then; -1: unknown.
  int64_t ended_by_ = -1, asleep_at_end_ = -1;
  std::chrono::steady_clock::time_point moment_ = std::chrono::steady_clock::now(), earliest_ = moment_;
  // All that follows is used by the thread of the sampler, until it has ended.
  StackTree tree_;
  NodeCache cache_;
  ThreadStates states_;
  std::unordered_map<const PyThreadState*, Known> threads_;
  std::vector<FoundThread> found_;
  std::vector<SampledThread> rows_;
  int64_t round_ = 0, cut_ = 0, lost_ = 0;
};

#else

class Sampler {
 public:
  Sampler(int64_t, const KnownCode&, CheckedMemory::Way) {}
  const pid_t process = getpid();
  bool can_read() const {
    return false;
  }
  void start() {}
  void stop() {}
  void read_out(const Owned&) {}
  void close() {}
};

#endif

// The sampler that runs, or nullptr. Changes while the GIL is held.
inline Sampler*& active_sampler() {
  static Sampler* found = nullptr;
  return found;
}

// Returns False where this system lets no thread read the memory of its own process, and on others than Linux.
inline PyObject* start_sampler(PyObject*, PyObject* arguments) {
  long long period_ns = 0;
  PyObject* outermost = Py_None;
  int way = CheckedMemory::kReadv;
  if (!PyArg_ParseTuple(arguments, "L|Oi", &period_ns, &outermost, &way)) {
    return nullptr;
  }
  if (active_sampler() != nullptr && active_sampler()->process == getpid()) {
    PyErr_SetString(PyExc_RuntimeError, "the sampler is running already: stop it first");
    return nullptr;
  }
  KnownCode known;
  known.outermost = PyCode_Check(outermost) ? reinterpret_cast<PyCodeObject*>(outermost) : nullptr;
  try {
    auto sampler = std::make_unique<Sampler>(period_ns, known, static_cast<CheckedMemory::Way>(way));
    if (!sampler->can_read()) {
      Py_RETURN_FALSE;
    }
    sampler->start();
    active_sampler() = sampler.release();
  } catch (const std::bad_alloc&) {
    return out_of_memory("there is not enough memory to start the sampler: free some");
  } catch (const std::exception& error) {
    PyErr_Format(PyExc_RuntimeError, "the system starts no thread for the sampler: %s", error.what());
    return nullptr;
  }
  Py_RETURN_TRUE;
}

// End the sampler and return its columns; None where none runs, and in a child that was forked meanwhile.
inline PyObject* stop_sampler(PyObject*, PyObject*) {
  Sampler* sampler = active_sampler();
  active_sampler() = nullptr;
  if (sampler == nullptr || sampler->process != getpid()) {
    Py_RETURN_NONE;  // in a child its thread is gone and may have held any lock: nothing is freed
  }
  Py_BEGIN_ALLOW_THREADS;
  sampler->stop();
  Py_END_ALLOW_THREADS;
  PyObject* columns = nullptr;
  try {
    Owned found(PyDict_New());
    sampler->read_out(found);
    columns = found.take();
  } catch (const std::exception&) {
    out_of_memory("there is not enough memory to read the samples, which are lost: free some");
  }
  sampler->close();
  delete sampler;
  return columns;
}

}  // namespace mtprof
