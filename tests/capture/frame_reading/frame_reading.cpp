// The part of the recorder that reads code and frames, as a module of its own: it needs no torch.
#include "samples/frame_reader.h"
#include "last_stacks.h"

#include <ctime>

namespace {

using namespace mtprof;

PyObject* text(const PythonText& from) {
  const auto length = static_cast<Py_ssize_t>(from.bytes.size() / from.width);
  return PyUnicode_FromKindAndData(static_cast<int>(from.width), from.bytes.data(), length);
}

// (file, name, lines of all instructions) of a code object, read as that of another thread is.
PyObject* facts(PyObject*, PyObject* code) {
  CheckedMemory memory;
  CodeFacts found;
  if (!copy_code(memory, reinterpret_cast<PyCodeObject*>(code), found)) {
    Py_RETURN_NONE;
  }
  PyObject* lines = PyList_New(0);
  for (int32_t instruction = 0; instruction < found.size; instruction += 2) {
    PyObject* line = PyLong_FromLong(found.line(instruction));
    PyList_Append(lines, line);
    Py_DECREF(line);
  }
  return Py_BuildValue("(NNN)", text(found.file), text(found.name), lines);
}

struct Reading {
  explicit Reading(int way) : memory(static_cast<CheckedMemory::Way>(way)) {}
  CheckedMemory memory;
  FrameReader reader{memory};
  StackTree tree;
  NodeCache cache;
  std::vector<FoundThread> threads;
};

// ([(name, line), …] innermost first, whether it is cut) of a thread that sleeps; None where it is not found.
PyObject* stack(PyObject*, PyObject* arguments) {
  long long native_id = 0;
  int way = 1;
  if (!PyArg_ParseTuple(arguments, "L|i", &native_id, &way)) {
    return nullptr;
  }
  Reading at(way);
  at.reader.threads(PyInterpreterState_Get(), at.threads);
  for (const FoundThread& one : at.threads) {
    if (one.native_id != native_id) {
      continue;
    }
    ReadThread where;
    LastStack last;
    if (at.reader.read(one.state, PyInterpreterState_Get(), KnownCode(), where, last.frames()) != FrameReader::kStack) {
      Py_RETURN_NONE;
    }
    int32_t node = last.node(at.tree, at.cache, at.memory);
    PyObject* found = PyList_New(0);
    for (; node >= 0; node = at.tree.nodes()[static_cast<size_t>(node)].parent) {
      const StackNode& frame = at.tree.nodes()[static_cast<size_t>(node)];
      const CodeFacts& code = at.tree.codes()[frame.code];
      PyObject* entry = Py_BuildValue("(Ni)", text(code.name), code.line(frame.instruction));
      PyList_Append(found, entry);
      Py_DECREF(entry);
    }
    return Py_BuildValue("(NN)", found, PyBool_FromLong(at.reader.is_cut));
  }
  Py_RETURN_NONE;
}

// Whether a thread whose two frames lead to each other is found to have no stack.
PyObject* circle(PyObject*, PyObject*) {
  _PyInterpreterFrame frames[2];
  std::memset(static_cast<void*>(frames), 0, sizeof(frames));
  for (int number = 0; number < 2; ++number) {
    frames[number].previous = &frames[1 - number];
#if PY_VERSION_HEX >= 0x030E0000
    frames[number].owner = FRAME_OWNED_BY_INTERPRETER;
#elif PY_VERSION_HEX >= 0x030C0000
    frames[number].owner = FRAME_OWNED_BY_CSTACK;
#endif
  }
  PyThreadState state;
  std::memset(static_cast<void*>(&state), 0, sizeof(state));
  state.interp = PyInterpreterState_Get();
#if PY_VERSION_HEX >= 0x030D0000
  state.current_frame = frames;
#else
  _PyCFrame holder{};
  holder.current_frame = frames;
  state.cframe = &holder;
#endif
  Reading at(CheckedMemory::kReadv);
  ReadThread where;
  std::vector<FramePosition> found;
  return PyBool_FromLong(at.reader.read(&state, state.interp, KnownCode(), where, found) == FrameReader::kTorn);
}

// Read all threads for so long, without the GIL, and hold what is met: (stacks, of them moved, torn, codes).
PyObject* watch(PyObject*, PyObject* arguments) {
  double seconds = 0;
  int way = 1;
  if (!PyArg_ParseTuple(arguments, "d|i", &seconds, &way)) {
    return nullptr;
  }
  long long stacks = 0, moved = 0, torn = 0;
  Reading at(way);
  PyInterpreterState* interpreter = PyInterpreterState_Get();
  at.tree.start_holding(KnownCode(), false);
  Py_BEGIN_ALLOW_THREADS;
  std::unordered_map<const PyThreadState*, std::pair<ReadThread, LastStack>> known;
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (std::chrono::steady_clock::now() < end) {
    at.reader.threads(interpreter, at.threads);
    for (const FoundThread& one : at.threads) {
      auto& [where, last] = known[one.state];
      const FrameReader::Result result = at.reader.read(one.state, interpreter, KnownCode(), where, last.frames());
      if (result == FrameReader::kNothing) {
        continue;
      }
      const bool is_stack = result == FrameReader::kStack && last.node(at.tree, at.cache, at.memory) != StackTree::kUnreadable;
      stacks += is_stack;
      torn += !is_stack;
      moved += is_stack && at.reader.certainty == kMoved;
    }
    const timespec pause{0, 200000};
    nanosleep(&pause, nullptr);
  }
  at.tree.stop_holding();
  Py_END_ALLOW_THREADS;
  const auto codes = static_cast<long long>(at.tree.codes().size());
  at.tree.close();
  return Py_BuildValue("(LLLL)", stacks, moved, torn, codes);
}

PyMethodDef methods[] = {{"facts", facts, METH_O, ""},
                         {"stack", stack, METH_VARARGS, ""},
                         {"circle", circle, METH_NOARGS, ""},
                         {"watch", watch, METH_VARARGS, ""},
                         {nullptr, nullptr, 0, nullptr}};
PyModuleDef definition = {PyModuleDef_HEAD_INIT, "frame_reading", "", -1, methods, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit_frame_reading() {
  return PyModule_Create(&definition);
}
