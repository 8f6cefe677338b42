// Functions that are recorded as ops, though torch does not call them by its dispatcher: kernels of
// compiled code.
#pragma once

#include <ATen/record_function.h>
#include <structmember.h>

#include "decoding.h"

namespace mtprof {

struct TimedCall {
  PyObject_HEAD
  vectorcallfunc call;
  PyObject* function;
  std::string* name;
};

inline PyObject* call_timed(
    PyObject* self, PyObject* const* arguments, size_t count, PyObject* keywords) {
  auto* timed = reinterpret_cast<TimedCall*>(self);
  at::RecordFunction scope(at::RecordScope::FUNCTION);
  if (scope.isActive()) {
    scope.before(timed->name->c_str());
  }
  return PyObject_Vectorcall(timed->function, arguments, count, keywords);
}

inline void free_timed(PyObject* self) {
  auto* timed = reinterpret_cast<TimedCall*>(self);
  PyTypeObject* type = Py_TYPE(self);
  Py_XDECREF(timed->function);
  delete timed->name;
  type->tp_free(self);
  Py_DECREF(type);
}

// Attributes are those of the function.
inline PyObject* attribute_of_timed(PyObject* self, PyObject* name) {
  return PyObject_GetAttr(reinterpret_cast<TimedCall*>(self)->function, name);
}

inline PyObject* timed_type() {
  static PyMemberDef members[] = {
      {"__vectorcalloffset__", T_PYSSIZET, offsetof(TimedCall, call), READONLY, nullptr},
      {nullptr, 0, 0, 0, nullptr},
  };
  static PyType_Slot slots[] = {
      {Py_tp_dealloc, reinterpret_cast<void*>(free_timed)},
      {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
      {Py_tp_getattro, reinterpret_cast<void*>(attribute_of_timed)},
      {Py_tp_members, members},
      {0, nullptr},
  };
  static PyType_Spec spec = {
      "_mtprof_recorder.TimedCall", sizeof(TimedCall), 0,
      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL, slots};
  static PyObject* type = PyType_FromSpec(&spec);
  return type;
}

// `timed(function, name)`: a function that does the same, and is recorded under this name.
inline PyObject* timed(PyObject*, PyObject* arguments) {
  PyObject* function = nullptr;
  const char* name = nullptr;
  if (!PyArg_ParseTuple(arguments, "Os", &function, &name)) {
    return nullptr;
  }
  auto* type = reinterpret_cast<PyTypeObject*>(timed_type());
  auto* made = type == nullptr ? nullptr : reinterpret_cast<TimedCall*>(type->tp_alloc(type, 0));
  if (made == nullptr) {
    return nullptr;
  }
  made->call = call_timed;
  made->function = Py_NewRef(function);
  made->name = new (std::nothrow) std::string(name);
  if (made->name == nullptr) {
    Py_DECREF(reinterpret_cast<PyObject*>(made));
    return PyErr_NoMemory();
  }
  return reinterpret_cast<PyObject*>(made);
}

}  // namespace mtprof
