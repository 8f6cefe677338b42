// Extension module `_mtprof_recorder`.
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <ATen/record_function.h>

namespace {

PyObject* callbacks_are_installed(PyObject*, PyObject*) {
  return PyBool_FromLong(at::hasGlobalCallbacks());
}

PyMethodDef methods[] = {
    {"callbacks_are_installed", callbacks_are_installed, METH_NOARGS, "Whether any observer listens to all threads."},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef module = {PyModuleDef_HEAD_INIT, "_mtprof_recorder", nullptr, -1, methods};

} // namespace

PyMODINIT_FUNC PyInit__mtprof_recorder() {
  return PyModule_Create(&module);
}
