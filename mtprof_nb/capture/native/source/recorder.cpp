// The module `_mtprof_recorder`: records the ops of PyTorch through its public observer interface.
#include <ATen/ops/empty.h>
#include <pthread.h>
#include <unistd.h>

#include <future>
#include <limits>

#include "live.h"
#include "living_objects.h"
#include "memory.h"
#include "observer.h"
#include "samples/sampler.h"
#include "scopes.h"
#include "timed_calls.h"
#include "whole_recording.h"

namespace mtprof {
namespace {

// Take the records of all threads. This needs no memory: there is room for them.
void take_threads(Recording& recording) {
  for (ThreadRecords* records : recording.threads) {
    records->lock.lock();
    recording.taken.push_back({records->native_id, records->torch_id, records->pthread_id,
                               records->joined, records->dropped, std::move(records->rows),
                               std::move(records->blocks), std::move(records->ids),
                               std::move(records->values_of_rows)});
    records->forget_rows();
    records->release_caches();
    records->recording = nullptr;
    const bool is_last = is_unused(*records);
    records->lock.unlock();
    if (is_last) {
      delete records;
    }
  }
}

// Let the calling thread read torch's callbacks, which takes a lock: in a child that it forks, nobody may release that.
void learn_callbacks() {
  try {
    at::getStepCallbacksUnlessEmpty(at::RecordScope::FUNCTION);
  } catch (const std::exception&) {
    // It learns of them at its next op.
  }
}

// End the recording and return it, or nullptr where there is none.
Recording* end_recording() {
  State& process = state();
  Recording* recording = nullptr;
  std::lock_guard<std::mutex> held(process.mutex);
  recording = process.recording;
  if (recording == nullptr) {
    return nullptr;
  }
  process.generation.store(0);
  process.recording = nullptr;
  leave_memory();
  at::removeCallback(process.handle);
  learn_callbacks();
  NotingAllocator::instance().remove();
  take_threads(*recording);
  return recording;
}

// In a forked child: remove the callback of its parent, unless another thread of that one held torch's lock meanwhile.
void remove_left(at::CallbackHandle left) {
  std::packaged_task<void()> removal([left] { at::removeCallback(left); });
  std::future<void> removed = removal.get_future();
  std::thread(std::move(removal)).detach();
  if (removed.wait_for(std::chrono::seconds(2)) != std::future_status::ready) {
    throw std::runtime_error(
        "nothing can be recorded in this process: it was forked while another thread held a lock of torch's; start it "
        "with the method 'spawn'");
  }
  removed.get();
}

// Begin a recording; false where one is active. Sets `notes_memory` where its memory is recorded.
bool begin_recording(const Options& options, bool& notes_memory) {
  State& process = state();
  std::lock_guard<std::mutex> held(process.mutex);
  if (process.recording != nullptr) {
    return false;
  }
  auto made = std::make_unique<Recording>(options);
  if (process.left != at::INVALID_CALLBACK_HANDLE) {
    remove_left(process.left);
    process.left = at::INVALID_CALLBACK_HANDLE;
  }
  process.process_id = static_cast<int64_t>(getpid());
  process.handle = at::addGlobalCallback(
      at::RecordFunctionCallback(&enter, &leave).needsInputs(options.with_inputs).needsIds(options.with_ids));
  learn_callbacks();
  notes_memory = options.with_memory && NotingAllocator::instance().install();
  process.recording = made.release();
  if (options.with_stacks) {
    process.recording->stacks.start_holding(options.known, true);
  }
  process.generation.store(++process.last_generation);
  enter_memory(options.with_device_memory);
  return true;
}

// Returns whether memory is recorded.
PyObject* start(PyObject*, PyObject* arguments, PyObject* keywords) {
  static const char* names[] = {"with_inputs", "with_stacks", "with_memory",
                                "with_ids",    "max_events",  "module_call",
                                "outermost",   "with_device_memory", nullptr};
  int with_inputs = 0, with_stacks = 0, with_memory = 0, with_ids = 0, with_device_memory = 0;
  long long max_events = 0;
  PyObject *module_call = Py_None, *outermost = Py_None;
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "ppppL|OOp", const_cast<char**>(names),
                                   &with_inputs, &with_stacks, &with_memory, &with_ids, &max_events,
                                   &module_call, &outermost, &with_device_memory)) {
    return nullptr;
  }
  Options options;
  options.with_inputs = with_inputs;
  options.with_stacks = with_stacks;
  options.with_memory = with_memory;
  options.with_device_memory = with_device_memory;
  options.with_ids = with_ids;
  options.max_events = max_events;
  options.known.module_call = PyCode_Check(module_call) ? reinterpret_cast<PyCodeObject*>(module_call) : nullptr;
  options.known.outermost = PyCode_Check(outermost) ? reinterpret_cast<PyCodeObject*>(outermost) : nullptr;
  bool notes_memory = false;
  try {
    if (begin_recording(options, notes_memory)) {
      return PyBool_FromLong(notes_memory);
    }
    PyErr_SetString(PyExc_RuntimeError, "the recorder is recording already: stop it first");
  } catch (const std::bad_alloc&) {
    return out_of_memory("there is not enough memory to start a recording: free some");
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

// `available` are the bytes that the system would give; more than there are end the process.
PyObject* stop(PyObject*, PyObject* arguments) {
  long long available = std::numeric_limits<long long>::max();
  if (!PyArg_ParseTuple(arguments, "|L", &available)) {
    return nullptr;
  }
  Recording* recording = nullptr;
  const int64_t ended = now_ns();
  Py_BEGIN_ALLOW_THREADS;  // a thread may be waiting for the GIL; nothing here can fail
  recording = end_recording();
  if (recording != nullptr) {
    recording->stacks.stop_holding();
  }
  Py_END_ALLOW_THREADS;
  if (recording == nullptr) {
    PyErr_SetString(PyExc_RuntimeError, "the recorder is not recording: start it first");
    return nullptr;
  }
  PyObject* found = nullptr;
  try {
    found = read_out(*recording, ended, available).take();
  } catch (const std::exception&) {
    out_of_memory("there is not enough memory to read the recording, which is lost");
  }
  recording->stacks.close();
  delete recording;
  return found;
}

// At the end of the process, and in a forked child: there other threads are gone and may have held any lock, torch's too,
// so that nothing is freed, and the callback, which does nothing from now on, stays.
PyObject* abandon(PyObject*, PyObject*) {
  State& process = state();
  process.generation.store(0);
  if (process.recording != nullptr) {
    process.recording = nullptr;
    if (process.process_id == static_cast<int64_t>(getpid())) {
      at::removeCallback(process.handle);
    } else {
      process.left = process.handle;
    }
    NotingAllocator::instance().remove();
    leave_memory();
    own_records = nullptr;
  }
  Py_RETURN_NONE;
}

bool read_live(uint64_t& generation) {
  State& process = state();
  std::lock_guard<std::mutex> held(process.mutex);
  generation = process.generation.load();
  if (process.recording == nullptr) {
    return false;
  }
  std::shared_ptr<LiveReader> live;
  live.swap(process.recording->live);  // kept only where the reading succeeds
  if (live == nullptr) {
    live = std::make_shared<LiveReader>();
  }
  live->read(*process.recording);
  process.recording->live = std::move(live);
  return true;
}

// Returns None where nothing is recorded.
PyObject* so_far(PyObject*, PyObject*) {
  constexpr size_t kOps = 8, kStacks = 64;
  uint64_t generation = 0;
  bool is_there = false;
  try {
    without_gil([&] { is_there = read_live(generation); });
    std::vector<LiveOp> ops;
    std::vector<LiveStack> stacks;
    int64_t until = 0;
    {
      // No Python object is made under the mutex: the garbage collector might run an op, which needs it.
      State& process = state();
      std::lock_guard<std::mutex> held(process.mutex);
      if (!is_there || process.generation.load() != generation || process.recording->live == nullptr) {
        Py_RETURN_NONE;
      }
      Recording& recording = *process.recording;
      LiveReader& live = *recording.live;
      until = recording.complete_until.load();
      for (const auto& [number, ns] : LiveReader::largest(live.name_ns, kOps)) {
        ops.push_back({recording.names.text(number), live.name_calls[number], ns});
      }
      for (const auto& [node, ns] : LiveReader::largest(live.stack_ns, kStacks)) {
        stacks.push_back({live_frames(recording.stacks, node), ns});
      }
    }
    return live_object(ops, stacks, until).take();
  } catch (const std::exception&) {
    return out_of_memory("there is not enough memory to tell what was recorded so far");
  }
}

// Nanoseconds of one call: of some batches, the shortest.
template <typename Function>
double shortest_call(Function&& function) {
  constexpr int kBatches = 16, kCalls = 64;
  int64_t shortest = std::numeric_limits<int64_t>::max();
  for (int batch = 0; batch < kBatches; ++batch) {
    const int64_t began = now_ns();
    for (int call = 0; call < kCalls; ++call) {
      function();
    }
    shortest = std::min(shortest, now_ns() - began);
  }
  return static_cast<double>(shortest) / kCalls;
}

// Nanoseconds that recording adds to an op that calls another one, here and now; None where somebody observes ops.
PyObject* op_cost(PyObject*, PyObject*) {
  Options options;
  options.max_events = std::numeric_limits<int64_t>::max();
  bool notes_memory = false;
  try {
    const at::Tensor tensor = at::empty({2});
    const auto run = [&] { tensor.unsqueeze(0); };
    const double plain = shortest_call(run);
    if (at::hasCallbacks() || !begin_recording(options, notes_memory)) {
      Py_RETURN_NONE;
    }
    double recorded = 0;
    {
      struct Ending {
        ~Ending() {
          delete end_recording();
        }
      } const ending;
      recorded = shortest_call(run);
    }
    // The clock of a thread that is new asks the system, which takes longer. Both events read it twice.
    volatile uint64_t read = 0;
    const double counter = shortest_call([&] { read = read_counter(); });
    const double clock =
        own_records == nullptr ? counter : shortest_call([&] { read = static_cast<uint64_t>(own_records->clock.now()); });
    return PyFloat_FromDouble(std::max(recorded - plain - 4 * (clock - counter), 0.0));
  } catch (const std::exception&) {
    return out_of_memory("there is not enough memory to measure the cost of recording: free some");
  }
}

PyObject* is_recording(PyObject*, PyObject*) {
  return PyBool_FromLong(state().generation.load() != 0);
}

PyMethodDef methods[] = {
    {"start", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)(void)>(start)), METH_VARARGS | METH_KEYWORDS,
     "Record from now on."},
    {"stop", stop, METH_VARARGS, "End the recording and return its columns."},
    {"abandon", abandon, METH_NOARGS, "In a forked child: end the recording there and keep nothing."},
    {"so_far", so_far, METH_NOARGS, "The ops and stacks that have cost most so far."},
    {"living", living, METH_VARARGS, "The living instances of each class, as lists."},
    {"op_cost", op_cost, METH_NOARGS, "The nanoseconds that recording adds to an op that calls another one."},
    {"is_recording", is_recording, METH_NOARGS, "Whether a recording is active."},
    {"note_memory", note_memory, METH_VARARGS, "Note a block by an odd number, and its bytes; 0 where it is released."},
    {"lend_memory", lend_memory, METH_O,
     "Leave the place for reports of devices' memory to torch, or take it again; whether a thread has it."},
    {"enter_scope", enter_scope, METH_VARARGS, "Open a scope, as torch does while its own profiler records."},
    {"leave_scope", leave_scope, METH_O, "Close a scope that `enter_scope` has opened."},
    {"timed", timed, METH_VARARGS, "A function that does the same, recorded as an op of a name."},
    {"start_sampler", start_sampler, METH_VARARGS, "Sample the Python stacks of all threads from now on."},
    {"stop_sampler", stop_sampler, METH_NOARGS, "End the samples and return their columns."},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_mtprof_recorder", "Records the ops of PyTorch.", -1, methods,
                          nullptr, nullptr, nullptr, nullptr};

}  // namespace
}  // namespace mtprof

PyMODINIT_FUNC PyInit__mtprof_recorder() {
  // All that is made once is made here: later, memory may not suffice.
  try {
    mtprof::state();
    mtprof::NotingAllocator::instance();
    mtprof::counter_is_the_clock();
    mtprof::TickTimes::instance();
  } catch (const std::exception&) {
    return PyErr_NoMemory();
  }
  if (pthread_key_create(&mtprof::key_of_threads(), &mtprof::end_thread) != 0) {
    PyErr_SetString(PyExc_ImportError, "the system has no more keys for threads");
    return nullptr;
  }
  // Another thread may hold any lock while the process forks: nothing is recorded in the child.
  const int is_refused = pthread_atfork(nullptr, nullptr, [] {
    mtprof::state().generation.store(0);
    mtprof::StackTree::told() = nullptr;
    mtprof::TickTimes::instance().after_fork();
    new (&mtprof::state().mutex) std::mutex();
    if (mtprof::own_records != nullptr) {  // its ops that are open end here too
      new (&mtprof::own_records->lock) mtprof::SpinLock();
    }
    mtprof::forget_who_waits_for_gil();
  });
  if (is_refused != 0) {
    return PyErr_NoMemory();
  }
  PyObject* module = PyModule_Create(&mtprof::definition);
  const bool is_complete =
      module != nullptr && PyModule_AddFunctions(module, mtprof::device_methods) == 0 &&
      PyModule_AddIntConstant(module, "reads_frames", MTPROF_READS_FRAMES) == 0 &&
      PyModule_AddIntConstant(module, "records_devices", MTPROF_RECORDS_DEVICES) == 0;
  if (!is_complete) {
    Py_CLEAR(module);
  }
  return module;
}
