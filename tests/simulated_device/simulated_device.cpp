// The module `_simulated_device`: a device behind the real Kineto of the installed torch, on a machine without one.
//
// It is an activity profiler like that of CUPTI. Ops launch through a boxed fallback of a dispatch key, so that a launch
// happens inside the op, on the thread that runs it, in the backward pass too.
#include <Python.h>

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/Allocator.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/distributed/c10d/ParamCommsUtils.hpp>
#include <torch/library.h>

#include "activities.h"

namespace simulated {
namespace {

std::unordered_map<std::string, Plan>& plans() {
  static auto* const found = new std::unordered_map<std::string, Plan>();
  return *found;
}

void on_op(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const auto planned = plans().find(op.schema().name());
  if (planned != plans().end()) {
    device().launch(planned->second, op.schema().name());
  }
  const c10::DispatchKeySet after(c10::DispatchKeySet::FULL_AFTER, c10::DispatchKey::TESTING_ONLY_GenericMode);
  op.redispatchBoxed(keys & after, stack);
}

// A call and what it launches: (name, [(activity, name, nanoseconds, stream, bytes), …]).
bool read_plan(PyObject* call, PyObject* works, Plan& plan) {
  plan.call = PyUnicode_AsUTF8(call);
  for (Py_ssize_t at = 0; at < PyList_Size(works); ++at) {
    const char *activity = nullptr, *name = nullptr;
    long long ns = 0, bytes = 0;
    int stream = 0, index = 0;
    if (!PyArg_ParseTuple(PyList_GetItem(works, at), "ssLiiL", &activity, &name, &ns, &index, &stream, &bytes)) {
      return false;
    }
    plan.works.push_back({libkineto::toActivityType(activity), name, ns, index, stream, bytes});
  }
  return true;
}

PyObject* install(PyObject*, PyObject* arguments) {
  const char* runtime = nullptr;
  if (!PyArg_ParseTuple(arguments, "s", &runtime)) {
    return nullptr;
  }
  device().runtime = libkineto::toActivityType(runtime);
  static bool is_done = false;
  if (!std::exchange(is_done, true)) {
    if (!libkineto::api().isProfilerRegistered()) {
      libkineto_init(true, true);
      libkineto::api().suppressLogMessages();
    }
    libkineto::api().registerProfilerFactory([] { return std::make_unique<Profiler>(); });
    libkineto::api().initProfilerIfRegistered();
  }
  Py_RETURN_NONE;
}

PyObject* set_mode(PyObject*, PyObject* arguments) {
  int is_on = 0;
  if (!PyArg_ParseTuple(arguments, "p", &is_on)) {
    return nullptr;
  }
  c10::impl::tls_set_dispatch_key_included(c10::DispatchKey::TESTING_ONLY_GenericMode, is_on != 0);
  Py_RETURN_NONE;
}

PyObject* plan(PyObject*, PyObject* arguments) {
  PyObject *op = nullptr, *call = nullptr, *works = nullptr;
  Plan made;
  if (!PyArg_ParseTuple(arguments, "UUO!", &op, &call, &PyList_Type, &works) || !read_plan(call, works, made)) {
    return nullptr;
  }
  plans()[PyUnicode_AsUTF8(op)] = made;
  Py_RETURN_NONE;
}

PyObject* forget(PyObject*, PyObject*) {
  plans().clear();
  device().settings = Settings();
  device().rows.clear();
  Py_RETURN_NONE;
}

PyObject* launch(PyObject*, PyObject* arguments) {
  PyObject *call = nullptr, *works = nullptr;
  long times = 1;
  Plan made;
  if (!PyArg_ParseTuple(arguments, "UO!|l", &call, &PyList_Type, &works, &times) || !read_plan(call, works, made)) {
    return nullptr;
  }
  Py_BEGIN_ALLOW_THREADS;
  for (long time = 0; time < times; ++time) {
    device().launch(made, "");
  }
  Py_END_ALLOW_THREADS;
  Py_RETURN_NONE;
}

// An all-reduce as c10d runs it: an op with the facts of the collective around the launch of its kernel.
PyObject* all_reduce(PyObject*, PyObject* arguments) {
  PyObject *call = nullptr, *works = nullptr;
  long long elements = 0;
  Plan made;
  if (!PyArg_ParseTuple(arguments, "UO!L", &call, &PyList_Type, &works, &elements) || !read_plan(call, works, made)) {
    return nullptr;
  }
  auto facts = std::make_shared<torch::ParamCommsDebugInfo>(
      std::tuple<std::string, std::string>("7", "default_pg"), 0, "allreduce", elements, elements, at::kFloat, std::vector<int64_t>(),
      std::vector<int64_t>(), 0, 1, 2);
  const c10::DebugInfoGuard guard(c10::DebugInfoKind::PARAM_COMMS_INFO, facts);
  at::RecordFunction op(at::RecordScope::FUNCTION);
  if (op.isActive()) {
    op.before("record_param_comms", static_cast<int64_t>(-1));
  }
  device().launch(made, "record_param_comms");
  op.end();
  Py_RETURN_NONE;
}

PyObject* settings(PyObject*, PyObject* arguments, PyObject* keywords) {
  static const char* names[] = {"launch_ns", "raw_threads", "lost_launches", "lost_works", "late_ns", nullptr};
  long long launch_ns = 1000, late_ns = 0;
  int raw_threads = 1, lost_launches = 0, lost_works = 0;
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|$LpiiL", const_cast<char**>(names), &launch_ns, &raw_threads,
                                   &lost_launches, &lost_works, &late_ns)) {
    return nullptr;
  }
  device().settings = {launch_ns, raw_threads != 0, lost_launches, lost_works, late_ns};
  Py_RETURN_NONE;
}

// The launches of the last session: (correlation, op, thread, [(name, nanoseconds, index, stream), …]).
PyObject* truth(PyObject*, PyObject*) {
  PyObject* found = PyList_New(0);
  for (const Row& row : device().rows) {
    PyObject* works = PyList_New(0);
    for (const Work& work : row.plan->works) {
      PyObject* one = Py_BuildValue("(sLii)", work.name.c_str(), static_cast<long long>(work.ns), work.index, work.stream);
      PyList_Append(works, one);
      Py_DECREF(one);
    }
    PyObject* one = Py_BuildValue("(IsiN)", row.correlation, row.op.c_str(), row.native_id, works);
    PyList_Append(found, one);
    Py_DECREF(one);
  }
  return found;
}

// Report an allocation, or a release where the bytes are negative, as a caching allocator does.
PyObject* report_memory(PyObject*, PyObject* arguments) {
  unsigned long long address = 0;
  long long nbytes = 0, total = 0;
  int type = 1, index = 0;
  if (!PyArg_ParseTuple(arguments, "KLLii", &address, &nbytes, &total, &type, &index)) {
    return nullptr;
  }
  c10::reportMemoryUsageToProfiler(reinterpret_cast<void*>(address), nbytes, static_cast<size_t>(total),
                                   static_cast<size_t>(total),
                                   c10::Device(static_cast<c10::DeviceType>(type), static_cast<c10::DeviceIndex>(index)));
  Py_RETURN_NONE;
}

PyObject* asked_for(PyObject*, PyObject*) {
  PyObject* found = PyList_New(0);
  for (const libkineto::ActivityType type : device().asked) {
    PyObject* text = PyUnicode_FromString(libkineto::toString(type));
    PyList_Append(found, text);
    Py_DECREF(text);
  }
  return found;
}

PyMethodDef methods[] = {
    {"install", install, METH_VARARGS, "Register the device with Kineto; its calls are of this activity."},
    {"set_mode", set_mode, METH_VARARGS, "Whether ops of this thread launch what is planned for them."},
    {"plan", plan, METH_VARARGS, "What an op launches from now on."},
    {"forget", forget, METH_NOARGS, "Forget all plans, settings and launches."},
    {"launch", launch, METH_VARARGS, "Launch here and now, some times."},
    {"all_reduce", all_reduce, METH_VARARGS, "Launch the kernel of a collective, as c10d does."},
    {"settings", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)(void)>(settings)), METH_VARARGS | METH_KEYWORDS,
     "Set the length of a launch, the numbers of threads, and which records are lost or late."},
    {"truth", truth, METH_NOARGS, "The launches of the last session."},
    {"report_memory", report_memory, METH_VARARGS, "Report an allocation or a release on the device."},
    {"asked_for", asked_for, METH_NOARGS, "The activities that the last session was asked for."},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_simulated_device", "A simulated device.", -1, methods,
                          nullptr, nullptr, nullptr, nullptr};

}  // namespace
}  // namespace simulated

TORCH_LIBRARY_IMPL(_, TESTING_ONLY_GenericMode, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&simulated::on_op>());
}

PyMODINIT_FUNC PyInit__simulated_device() {
  return PyModule_Create(&simulated::definition);
}
