// Records devices through Kineto alone: without its observer of ops, and without torch's profiler.
//
// There is one Kineto in a process, which torch.profiler uses too: who prepares it ends the
// recording of who did before.
#pragma once

#if __has_include(<libkineto.h>) && !defined(MTPROF_NO_KINETO)
#define MTPROF_RECORDS_DEVICES 1
#else
#define MTPROF_RECORDS_DEVICES 0
#endif

#if MTPROF_RECORDS_DEVICES

#include <unistd.h>

#include "device_columns.h"
#include "../tick_times.h"

namespace libkineto {
// Makes nanoseconds of the ticks that Kineto lets CUPTI read. No header of it is shipped.
std::function<int64_t(uint64_t)>& get_time_converter();
}  // namespace libkineto

namespace mtprof {

struct DeviceState {
  // The process in which we have prepared Kineto, and have not stopped it; 0 where we have not.
  pid_t prepared_by = 0;
  bool is_started = false;
  // The wall clock less the monotonic one.
  int64_t offset_ns = 0;
  // A recording that has ended and is not read yet.
  std::unique_ptr<libkineto::ActivityTraceInterface> ended;
};

// Changes while the GIL is held.
inline DeviceState& devices() {
  static DeviceState found;
  return found;
}

inline int64_t wall_offset_ns() {
  timespec moment;
  clock_gettime(CLOCK_REALTIME, &moment);
  return static_cast<int64_t>(moment.tv_sec) * 1000000000 + moment.tv_nsec - now_ns();
}

inline libkineto::ActivityProfilerInterface& kineto() {
  return libkineto::api().activityProfiler();
}

inline bool kineto_is_active() {
  return libkineto::api().isProfilerInitialized() && kineto().isActive();
}

// Run a function of Kineto's without the GIL; false with a Python error where it fails.
template <typename Function>
bool run_kineto(Function&& function) {
  std::string problem;
  bool has_failed = false;
  Py_BEGIN_ALLOW_THREADS;
  try {
    function();
  } catch (const std::exception& error) {
    has_failed = true;
    problem = error.what();
  } catch (...) {
    has_failed = true;
  }
  Py_END_ALLOW_THREADS;
  if (has_failed) {
    PyErr_Format(PyExc_RuntimeError, "Kineto failed: %s", problem.c_str());
  }
  return !has_failed;
}

// The activities that this Kineto knows by these names.
inline bool read_types(PyObject* names, std::set<libkineto::ActivityType>& types) {
  for (Py_ssize_t at = 0; at < PyList_GET_SIZE(names); ++at) {
    const char* name = PyUnicode_AsUTF8(PyList_GET_ITEM(names, at));
    if (name == nullptr) {
      return false;
    }
    try {
      types.insert(libkineto::toActivityType(name));
    } catch (const std::exception&) {
      // Another version of Kineto has it.
    }
  }
  return true;
}

// Returns False where another recording of Kineto is active.
inline PyObject* prepare_devices(PyObject*, PyObject* arguments) {
  PyObject* names = nullptr;
  const char* config = "";
  std::set<libkineto::ActivityType> types;
  if (!PyArg_ParseTuple(arguments, "O!s", &PyList_Type, &names, &config) ||
      !read_types(names, types)) {
    return nullptr;
  }
  DeviceState& own = devices();
  // A recording of the process that forked this one ends here.
  const bool is_inherited = own.prepared_by != 0 && own.prepared_by != getpid();
  if (kineto_is_active() && !is_inherited) {
    Py_RETURN_FALSE;
  }
  const bool is_ready = run_kineto([&] {
    if (!libkineto::api().isProfilerRegistered()) {
      libkineto_init(/*cpuOnly=*/false, /*logOnError=*/true);
      libkineto::api().suppressLogMessages();
    }
    libkineto::api().initProfilerIfRegistered();
    if (is_inherited && kineto_is_active()) {
      kineto().stopTrace();
    }
    kineto().prepareTrace(types, config);
  });
  if (!is_ready) {
    return nullptr;
  }
  own = {getpid(), false, 0, nullptr};
  Py_RETURN_TRUE;
}

inline PyObject* start_devices(PyObject*, PyObject*) {
  DeviceState& own = devices();
  if (own.prepared_by != getpid() || own.is_started) {
    PyErr_SetString(PyExc_RuntimeError,
                    "Kineto is not prepared for devices, or records already: prepare it first");
    return nullptr;
  }
  own.offset_ns = wall_offset_ns();
  TickTimes::instance().begin();
  if (!run_kineto([] { kineto().startTrace(); })) {
    return nullptr;
  }
  own.is_started = true;
  Py_RETURN_NONE;
}

// End Kineto's recording. The converter of torch's profiler is put back: it sets its own for each
// recording.
inline std::unique_ptr<libkineto::ActivityTraceInterface> stop_kineto(const DeviceState& own) {
#if MTPROF_HAS_COUNTER
  TickTimes::instance().end();
  const int64_t offset_ns = own.offset_ns;
  auto before = libkineto::get_time_converter();
  libkineto::get_time_converter() = [offset_ns](uint64_t ticks) {
    return TickTimes::instance().ns(ticks) + offset_ns;
  };
#endif
  auto found = kineto().stopTrace();
#if MTPROF_HAS_COUNTER
  libkineto::get_time_converter() = before;
#endif
  return found;
}

// End the recording, and return how many events it has, which `read_devices` reads; None where
// another recording of Kineto's has ended this one. What was prepared and not started is released.
inline PyObject* stop_devices(PyObject*, PyObject*) {
  DeviceState own = std::exchange(devices(), DeviceState());
  if (own.prepared_by != getpid() || !kineto_is_active()) {
    Py_RETURN_NONE;  // another stop of the same recording would end the process
  }
  const bool is_stopped = run_kineto([&] {
    if (!own.is_started) {
      kineto().startTrace();  // Kineto releases what it has prepared only at the end of a recording
    }
    own.ended = stop_kineto(own);
  });
  if (!is_stopped) {
    return nullptr;
  }
  if (!own.is_started || own.ended == nullptr || own.ended->activities() == nullptr) {
    Py_RETURN_NONE;
  }
  const size_t count = own.ended->activities()->size();
  devices() = {0, false, own.offset_ns, std::move(own.ended)};
  return PyLong_FromSize_t(count);
}

// Columns of at most so many events of the recording that has ended. It is released.
inline PyObject* read_devices(PyObject*, PyObject* arguments) {
  long long most = 0;
  if (!PyArg_ParseTuple(arguments, "L", &most)) {
    return nullptr;
  }
  auto trace = std::move(devices().ended);
  if (trace == nullptr) {
    PyErr_SetString(PyExc_RuntimeError, "no recording of devices has ended: stop one first");
    return nullptr;
  }
  const int64_t offset_ns = devices().offset_ns;
  try {
    const auto most_rows = static_cast<size_t>(std::max(most, 0LL));
    Owned found = device_columns(*trace->activities(), offset_ns, most_rows);
    set_item(found, "clock_moved_ns", Owned(PyLong_FromLongLong(wall_offset_ns() - offset_ns)));
    run_kineto([&] { trace.reset(); });
    return found.take();
  } catch (const std::exception&) {
    return out_of_memory("there is not enough memory to read what devices did, which is lost");
  }
}

inline PyObject* toggle_devices(PyObject*, PyObject* enable) {
  if (devices().is_started && devices().prepared_by == getpid() && kineto_is_active() &&
      !run_kineto([&] { kineto().toggleCollectionDynamic(enable == Py_True); })) {
    return nullptr;
  }
  Py_RETURN_NONE;
}

inline PyMethodDef device_methods[] = {
    {"prepare_devices", prepare_devices, METH_VARARGS,
     "Prepare Kineto for activities; False where it is in use."},
    {"start_devices", start_devices, METH_NOARGS, "Record devices from now on."},
    {"stop_devices", stop_devices, METH_NOARGS,
     "End the recording of devices and return the number of its events, or None."},
    {"read_devices", read_devices, METH_VARARGS, "Columns of the recording that has ended."},
    {"toggle_devices", toggle_devices, METH_O, "Record devices from now on, or do not."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace mtprof

#else

namespace mtprof {
inline PyMethodDef device_methods[] = {{nullptr, nullptr, 0, nullptr}};
}  // namespace mtprof

#endif
