// Scopes that Python code opens by `_RecordFunctionFast`, which torch leaves out unless its own profiler records.
#pragma once

#include <ATen/record_function.h>
#include <torch/csrc/profiler/orchestration/observer.h>

#include "decoding.h"

namespace mtprof {

constexpr const char* kScopeName = "mtprof_nb scope";

inline at::RecordFunction* scope_of(PyObject* capsule) {
  return static_cast<at::RecordFunction*>(PyCapsule_GetPointer(capsule, kScopeName));
}

// Whether torch's own profiler records, for the calling thread or for all. PyTorch 2.15 has two functions for it.
template <typename State>
auto torch_records(int) -> decltype(State::get(), true) {
  return State::get() != nullptr;
}

template <typename State>
auto torch_records(long) -> decltype(State::getTLS(), true) {
  return State::getTLS() != nullptr || State::getGlobal() != nullptr;
}

// Returns an object for `leave_scope`; None where torch's profiler records, so that torch opens the scope for all.
inline PyObject* enter_scope(PyObject*, PyObject* arguments) {
  const char* name = nullptr;
  Py_ssize_t size = 0;
  int is_of_user = 0;
  if (!PyArg_ParseTuple(arguments, "y#p", &name, &size, &is_of_user)) {
    return nullptr;
  }
  if (torch_records<torch::profiler::impl::ProfilerStateBase>(0)) {
    Py_RETURN_NONE;
  }
  try {
    auto scope = std::make_unique<at::RecordFunction>(
        is_of_user ? at::RecordScope::USER_SCOPE : at::RecordScope::FUNCTION);
    Owned capsule(PyCapsule_New(scope.get(), kScopeName, [](PyObject* object) { delete scope_of(object); }));
    scope.release()->before(std::string(name, static_cast<size_t>(size)));
    return capsule.take();
  } catch (const std::exception&) {  // the scope is missing, and the program goes on
    PyErr_Clear();
    Py_RETURN_NONE;
  }
}

inline PyObject* leave_scope(PyObject*, PyObject* capsule) {
  at::RecordFunction* scope = scope_of(capsule);
  if (scope == nullptr) {
    return nullptr;
  }
  scope->end();
  Py_RETURN_NONE;
}

}  // namespace mtprof
