// The module `_mtprof_recorder`: records the ops of PyTorch through its public observer interface.
#include <pthread.h>
#include <unistd.h>

#include <limits>

#include "held_memory.h"
#include "live.h"
#include "living_objects.h"
#include "memory.h"
#include "observer.h"
#include "readout.h"
#include "sampler.h"

namespace mtprof {
namespace {

void forget_threads(Recording& recording, std::vector<TakenThread>* taken) {
  for (ThreadRecords* records : recording.threads) {
    records->lock.lock();
    if (taken != nullptr) {
      taken->push_back({records->native_id, records->torch_id, records->dropped, std::move(records->rows),
                        std::move(records->blocks), std::move(records->ids)});
    }
    records->rows = Chunks<Row>();
    records->blocks = Chunks<Block>();
    records->ids = Chunks<CallId>();
    records->recording = nullptr;
    const bool is_last = is_unused(*records);
    records->lock.unlock();
    if (is_last) {
      delete records;
    }
  }
}

// End the recording and return it, or nullptr where there is none.
Recording* end_recording(std::vector<TakenThread>* taken) {
  State& process = state();
  Recording* recording = nullptr;
  std::lock_guard<std::mutex> held(process.mutex);
  recording = process.recording;
  if (recording == nullptr) {
    return nullptr;
  }
  process.generation.store(0);
  process.recording = nullptr;
  at::removeCallback(process.handle);
  NotingAllocator::instance().remove();
  forget_threads(*recording, taken);
  return recording;
}

void wait_for_learners(const Recording& recording) {
  while (recording.learners.load() > 0) {
    std::this_thread::yield();
  }
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
    at::removeCallback(process.left);
    process.left = at::INVALID_CALLBACK_HANDLE;
  }
  process.process_id = static_cast<int64_t>(getpid());
  process.handle = at::addGlobalCallback(
      at::RecordFunctionCallback(&enter, &leave).needsInputs(options.with_inputs).needsIds(options.with_ids));
  notes_memory = options.with_memory && NotingAllocator::instance().install();
  process.recording = made.release();
  process.generation.store(++process.last_generation);
  return true;
}

// Returns whether memory is recorded.
PyObject* start(PyObject*, PyObject* arguments, PyObject* keywords) {
  static const char* names[] = {"with_inputs", "with_stacks", "with_memory", "with_ids", "max_events",
                                "module_call", "outermost",   nullptr};
  int with_inputs = 0, with_stacks = 0, with_memory = 0, with_ids = 0;
  long long max_events = 0;
  PyObject *module_call = Py_None, *outermost = Py_None;
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "ppppL|OO", const_cast<char**>(names), &with_inputs,
                                   &with_stacks, &with_memory, &with_ids, &max_events, &module_call, &outermost)) {
    return nullptr;
  }
  Options options;
  options.with_inputs = with_inputs;
  options.with_stacks = with_stacks;
  options.with_memory = with_memory;
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
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

Owned read_out(Recording& recording, std::vector<TakenThread>& taken, int64_t ended) {
  Owned found(PyDict_New());
  std::vector<PlacedRow> rows;
  std::vector<PlacedBlock> blocks;
  int64_t dropped = 0, until = std::numeric_limits<int64_t>::max();
  Py_BEGIN_ALLOW_THREADS;
  rows = ordered_rows(taken, ended);
  dropped = leave_out(rows, recording.options.max_events, until);
  blocks = own_blocks(taken, until);
  Py_END_ALLOW_THREADS;
  SeparatedInputs inputs(recording.inputs);
  read_rows(rows, inputs, found);
  read_ids(taken, recording.options.with_ids ? rows.size() : 0, found);
  read_blocks(blocks, found);
  read_held(rows, blocks, recording.options.with_memory, found);
  read_stacks(recording.stacks, found);
  read_texts(recording.names, found, "names", [](const std::string& text) { return text_object(text); });
  read_texts(inputs.forms, found, "forms", [](const std::string& text) { return forms_object(text); });
  read_texts(inputs.values, found, "value_texts", [](const std::string& text) { return text_object(values_text(text)); });
  read_texts(recording.extras, found, "extras", [](const std::string& text) { return text_object(text); });
  read_texts(recording.addresses, found, "address_lists", [](const std::string& text) { return addresses_object(text); });
  set_item(found, "threads", threads_object(taken));
  set_item(found, "dropped", Owned(PyLong_FromLongLong(dropped + dropped_by(taken))));
  return found;
}

PyObject* stop(PyObject*, PyObject*) {
  std::vector<TakenThread> taken;
  Recording* recording = nullptr;
  const int64_t ended = now_ns();
  Py_BEGIN_ALLOW_THREADS;  // a thread may be waiting for the GIL inside an op
  recording = end_recording(&taken);
  if (recording != nullptr) {
    wait_for_learners(*recording);
  }
  Py_END_ALLOW_THREADS;
  if (recording == nullptr) {
    PyErr_SetString(PyExc_RuntimeError, "the recorder is not recording: start it first");
    return nullptr;
  }
  PyObject* found = nullptr;
  try {
    found = read_out(*recording, taken, ended).take();
  } catch (const std::exception& error) {
    if (!PyErr_Occurred()) {
      PyErr_SetString(PyExc_MemoryError, "not enough memory to read the recording");
    }
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
  if (process.recording->live == nullptr) {
    process.recording->live = std::make_shared<LiveReader>();
  }
  process.recording->live->read(*process.recording);
  return true;
}

// Returns None where nothing is recorded.
PyObject* so_far(PyObject*, PyObject*) {
  constexpr size_t kOps = 8, kStacks = 64;
  uint64_t generation = 0;
  bool is_there = false;
  Py_BEGIN_ALLOW_THREADS;
  is_there = read_live(generation);
  Py_END_ALLOW_THREADS;
  std::vector<LiveOp> ops;
  std::vector<LiveStack> stacks;
  try {
    {
      // No Python object is made under the mutex: the garbage collector might run an op, which needs it.
      State& process = state();
      std::lock_guard<std::mutex> held(process.mutex);
      if (!is_there || process.generation.load() != generation) {
        Py_RETURN_NONE;
      }
      Recording& recording = *process.recording;
      LiveReader& live = *recording.live;
      for (const auto& [number, ns] : LiveReader::largest(live.name_ns, kOps)) {
        ops.push_back({recording.names.text(number), live.name_calls[number], ns});
      }
      for (const auto& [node, ns] : LiveReader::largest(live.stack_ns, kStacks)) {
        stacks.push_back({live_frames(recording.stacks, node), ns});
      }
    }
    return live_object(ops, stacks).take();
  } catch (const std::exception&) {
    return PyErr_Occurred() ? nullptr : PyErr_NoMemory();
  }
}

PyObject* is_recording(PyObject*, PyObject*) {
  return PyBool_FromLong(state().generation.load() != 0);
}

PyMethodDef methods[] = {
    {"start", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)(void)>(start)), METH_VARARGS | METH_KEYWORDS,
     "Record from now on."},
    {"stop", stop, METH_NOARGS, "End the recording and return its columns."},
    {"abandon", abandon, METH_NOARGS, "In a forked child: end the recording there and keep nothing."},
    {"so_far", so_far, METH_NOARGS, "The ops and stacks that have cost most so far."},
    {"living", living, METH_VARARGS, "The living instances of each class, as lists."},
    {"is_recording", is_recording, METH_NOARGS, "Whether a recording is active."},
    {"start_sampler", start_sampler, METH_VARARGS, "Sample the Python stacks of all threads from now on."},
    {"stop_sampler", stop_sampler, METH_NOARGS, "End the samples and return their columns."},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_mtprof_recorder", "Records the ops of PyTorch.", -1, methods,
                          nullptr, nullptr, nullptr, nullptr};

}  // namespace
}  // namespace mtprof

PyMODINIT_FUNC PyInit__mtprof_recorder() {
  // Another thread may hold any lock while the process forks: nothing is recorded in the child.
  pthread_atfork(nullptr, nullptr, [] {
    mtprof::state().generation.store(0);
    new (&mtprof::state().mutex) std::mutex();
    if (mtprof::own_records != nullptr) {  // its ops that are open end here too
      new (&mtprof::own_records->lock) mtprof::SpinLock();
    }
  });
  PyObject* module = PyModule_Create(&mtprof::definition);
  if (module != nullptr && PyModule_AddIntConstant(module, "reads_frames", MTPROF_READS_FRAMES) < 0) {
    Py_DECREF(module);
    return nullptr;
  }
  return module;
}
