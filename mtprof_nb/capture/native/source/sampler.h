// Samples of the Python stacks of all threads, taken every few milliseconds at random moments.
//
// A thread of its own asks for each sample. A main thread that is running answers in a pending call of Python, between
// two instructions: it keeps the GIL, and nothing about the interpreter changes. Where the main thread is asleep, or does
// not answer because it is inside C code, the sampler takes the GIL itself.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <ctime>
#include <random>
#include <thread>
#include <unordered_map>
#include <unordered_set>

#include "readout.h"

#define MTPROF_SETS_BREAKER (MTPROF_READS_FRAMES && PY_VERSION_HEX < 0x030D0000)

#if MTPROF_SETS_BREAKER
#undef _PyGC_FINALIZED  // Python 3.12 defines a function of this name for its own use
#undef HAVE_STD_ATOMIC  // C's atomic types are none of C++; the other ones of Python have the same layout
#include <internal/pycore_interp.h>
#endif

namespace mtprof {

// Let the running thread look for pending calls now. Before Python 3.13 a call that another thread adds does not do so.
inline void announce_pending_call([[maybe_unused]] PyInterpreterState* interpreter) {
#if MTPROF_SETS_BREAKER
  __atomic_store_n(&interpreter->ceval.eval_breaker._value, 1, __ATOMIC_SEQ_CST);
#endif
}

struct SampledThread {
  int64_t asked;
  int64_t taken;
  int64_t native_id;
  int64_t awake;
  int32_t node;
  int8_t is_waiting;
};

// A file in which the system tells of each thread. Files stay open: that is faster.
class ThreadFiles {
 public:
  explicit ThreadFiles(const char* name) : name_(name) {}

  ~ThreadFiles() {
    for (const auto& [native_id, file] : files_) {
      if (file >= 0) {
        close(file);
      }
    }
  }

  // Empty where the system has no such file, and on others than Linux.
  std::string read([[maybe_unused]] int64_t native_id) {
#ifdef __linux__
    char text[256];
    const int file = file_of(native_id);
    const ssize_t count = file < 0 ? -1 : pread(file, text, sizeof(text), 0);
    if (count > 0) {
      return std::string(text, static_cast<size_t>(count));
    }
#endif
    return std::string();
  }

 private:
  static constexpr size_t kMostFiles = 128;

  int file_of(int64_t native_id) {
    auto found = files_.find(native_id);
    if (found == files_.end()) {
      if (files_.size() >= kMostFiles) {
        return -1;
      }
      const std::string path = "/proc/self/task/" + std::to_string(native_id) + "/" + name_;
      found = files_.emplace(native_id, open(path.c_str(), O_RDONLY | O_CLOEXEC)).first;
    }
    return found->second;
  }

  const char* const name_;
  std::unordered_map<int64_t, int> files_;
};

// Whether threads are asleep; where the system does not tell, none is.
class ThreadStates {
 public:
  void read(const std::vector<int64_t>& native_ids) {
    asleep_.clear();
    for (const int64_t native_id : native_ids) {
      if (is_asleep(native_id)) {
        asleep_.insert(native_id);
      }
    }
  }

  bool was_asleep(int64_t native_id) const {
    return asleep_.count(native_id) > 0;
  }

  bool is_asleep(int64_t native_id) {
    const std::string read = files_.read(native_id);
    const size_t name_ends = read.rfind(") ");  // the name of a thread may hold any character
    return name_ends != std::string::npos && name_ends + 2 < read.size() && read[name_ends + 2] != 'R';
  }

 private:
  ThreadFiles files_{"stat"};
  std::unordered_set<int64_t> asleep_;
};

// For how long threads have not been asleep: they ran, or waited for a processor.
class AwakeTimes {
 public:
  // Nanoseconds since the thread began; -1 where the system does not tell.
  int64_t read(int64_t native_id) {
#ifdef __linux__
    const std::string read = files_.read(native_id);
    const size_t ran = read.find(' ');
    timespec processor;
    if (ran != std::string::npos && clock_gettime(clock_of(native_id), &processor) == 0) {
      const int64_t waited = std::strtoll(read.c_str() + ran, nullptr, 10);
      return processor.tv_sec * 1000000000LL + processor.tv_nsec + waited;
    }
#endif
    return -1;
  }

 private:
  // Linux's number of the clock of a thread.
  static clockid_t clock_of(int64_t native_id) {
    return static_cast<clockid_t>((~static_cast<unsigned int>(native_id) << 3) | 6);
  }

  ThreadFiles files_{"schedstat"};
};

class Sampler {
 public:
  Sampler(int64_t period_ns, const KnownCode& known)
      : process(getpid()), period_ns_(period_ns), known_(known), random_(std::random_device{}()) {}

  const pid_t process;

  void start() {
    interpreter_ = PyInterpreterState_Get();
    for (PyThreadState* one = PyInterpreterState_ThreadHead(interpreter_); one != nullptr;
         one = PyThreadState_Next(one)) {
      native_ids_.push_back(static_cast<int64_t>(native_id_of(one)));  // for the first sample: who of them sleeps
    }
    thread_ = std::thread([this] { run(); });
  }

  // Ends the thread. The GIL must not be held.
  void stop() {
    {
      std::lock_guard<std::mutex> held(mutex_);
      is_stopping_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  // In the main thread, which holds the GIL.
  void answer() {
    is_queued_.store(false);
    if (is_asked_.load(std::memory_order_acquire)) {
      take(PyThreadState_Get());
    }
  }

  void read_out(const Owned& found) {
    const size_t count = rows_.size();
    Column<int64_t> asked(count), taken(count), thread(count), awake(count);
    Column<int32_t> node(count);
    Column<int8_t> is_waiting(count);
    for (size_t position = 0; position < count; ++position) {
      const SampledThread& row = rows_[position];
      asked[position] = row.asked;
      taken[position] = row.taken;
      thread[position] = row.native_id;
      awake[position] = row.awake;
      node[position] = row.node;
      is_waiting[position] = row.is_waiting;
    }
    asked.into(found, "asked");
    taken.into(found, "taken");
    thread.into(found, "thread");
    awake.into(found, "awake");
    node.into(found, "node");
    is_waiting.into(found, "is_waiting");
    read_stacks(tree_, found);
  }

  void close() {
    tree_.close();
  }

 private:
  // How long a main thread that is not asleep has for its answer: it may be computing in C, or suspended by the system.
  static constexpr int64_t kAnswerTime = 10000000;
  // After so many rows samples become ten times rarer, so that a recording of hours stays small.
  static constexpr size_t kManyRows = 400000;

  void run() {
    own_ = PyThreadState_New(interpreter_);  // does not need the GIL, which may not be free for long
    while (wait_for_moment()) {
      ask();
    }
    PyEval_RestoreThread(own_);
    PyThreadState_Clear(own_);
    PyThreadState_DeleteCurrent();
  }

  // False at the end. Moments are random and do not depend on the program, so that they fall on all of it alike.
  bool wait_for_moment() {
    const auto now = std::chrono::steady_clock::now();
    while (moment_ <= now) {
      const double period = static_cast<double>(period_ns_) * (is_rare_ ? 10.0 : 1.0);
      const double length = period * std::uniform_real_distribution<double>(0.5, 1.5)(random_);
      moment_ += std::chrono::nanoseconds(static_cast<int64_t>(length));
    }
    std::unique_lock<std::mutex> held(mutex_);
    return !changed_.wait_until(held, moment_, [this] { return is_stopping_; });
  }

  void ask();

  // Read all threads; `answering` is the one that runs this, and holds the GIL.
  void take(const PyThreadState* answering) {
    const int64_t taken = now_ns();
    native_ids_.clear();
    for (PyThreadState* one = PyInterpreterState_ThreadHead(interpreter_); one != nullptr;
         one = PyThreadState_Next(one)) {
      if (one == own_) {
        continue;
      }
      walk(one, known_, frames_);
      if (frames_.empty()) {
        continue;
      }
      if (!tree_.knows(frames_)) {
        tree_.learn(frames_);
      }
      int32_t node = -1;
      for (size_t depth = frames_.size(); depth-- > 0;) {
        node = tree_.node({node, frames_[depth]});
      }
      const auto native_id = static_cast<int64_t>(native_id_of(one));
      native_ids_.push_back(native_id);
      const bool is_waiting = one != answering && states_.was_asleep(native_id);
      const int64_t awake = awake_times_.read(native_id);
      rows_.push_back({asked_, taken, native_id, awake, node, static_cast<int8_t>(is_waiting)});
    }
    is_rare_ = rows_.size() > kManyRows;
    is_asked_.store(false, std::memory_order_release);
  }

  static unsigned long native_id_of(const PyThreadState* state) {
#if MTPROF_READS_FRAMES
    return state->native_thread_id;
#else
    return 0;
#endif
  }

  const int64_t period_ns_;
  const KnownCode known_;
  std::mt19937_64 random_;
  PyInterpreterState* interpreter_ = nullptr;
  PyThreadState* own_ = nullptr;
  std::thread thread_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_stopping_ = false;
  std::chrono::steady_clock::time_point moment_ = std::chrono::steady_clock::now();
  // While a sample is asked for, all that follows belongs to the thread that holds the GIL; else to the sampler.
  std::atomic<bool> is_asked_{false};
  std::atomic<bool> is_queued_{false};
  std::atomic<bool> is_rare_{false};
  int64_t asked_ = 0;
  StackTree tree_;
  ThreadStates states_, main_state_;
  AwakeTimes awake_times_;
  std::vector<FramePosition> frames_;
  std::vector<int64_t> native_ids_;
  std::vector<SampledThread> rows_;
};

// The sampler that runs, or nullptr. Changes while the GIL is held.
inline Sampler*& active_sampler() {
  static Sampler* found = nullptr;
  return found;
}

// The pending call. It may run after the sampler has ended, and in a forked child.
inline int answer_pending(void*) {
  Sampler* sampler = active_sampler();
  if (sampler != nullptr && sampler->process == getpid()) {
    sampler->answer();
  }
  return 0;
}

inline void Sampler::ask() {
  if (!is_asked_.load(std::memory_order_acquire)) {
    states_.read(native_ids_);
    asked_ = now_ns();
    is_asked_.store(true, std::memory_order_release);
  }
  const bool is_asleep = main_state_.is_asleep(process);  // the main thread has the number of the process
  if (!is_asleep && now_ns() - asked_ < kAnswerTime) {
    if (!is_queued_.exchange(true) && Py_AddPendingCall(&answer_pending, nullptr) != 0) {
      is_queued_.store(false);
    }
    announce_pending_call(interpreter_);
    return;
  }
  PyEval_RestoreThread(own_);
  if (is_asked_.load(std::memory_order_acquire)) {
    take(own_);
  }
  PyEval_SaveThread();
}

inline PyObject* start_sampler(PyObject*, PyObject* arguments) {
  long long period_ns = 0;
  PyObject* outermost = Py_None;
  if (!PyArg_ParseTuple(arguments, "L|O", &period_ns, &outermost)) {
    return nullptr;
  }
  if (active_sampler() != nullptr) {
    PyErr_SetString(PyExc_RuntimeError, "the sampler is running already: stop it first");
    return nullptr;
  }
  KnownCode known;
  known.outermost = PyCode_Check(outermost) ? reinterpret_cast<PyCodeObject*>(outermost) : nullptr;
  Sampler* sampler = new Sampler(period_ns, known);
  try {
    sampler->start();
  } catch (const std::exception&) {
    delete sampler;
    PyErr_SetString(PyExc_RuntimeError, "the system starts no thread for the sampler");
    return nullptr;
  }
  active_sampler() = sampler;
  Py_RETURN_NONE;
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
    if (!PyErr_Occurred()) {
      PyErr_SetString(PyExc_MemoryError, "not enough memory to read the samples");
    }
  }
  sampler->close();
  delete sampler;
  return columns;
}

}  // namespace mtprof
