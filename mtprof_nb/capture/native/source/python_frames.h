// The Python frames of the calling thread, read without the GIL.
//
// A thread that is inside an op changes none of its own frames, so it may read them whether it holds the GIL or not. In a
// Python that has no GIL, nothing keeps the frames of other threads as they are: none are read there.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030F0000 && !defined(Py_GIL_DISABLED)
#define MTPROF_READS_FRAMES 1
#else
#define MTPROF_READS_FRAMES 0
#endif

#if MTPROF_READS_FRAMES
#ifndef Py_BUILD_CORE
#define Py_BUILD_CORE 1
#endif
#if PY_VERSION_HEX >= 0x030E0000
#include <internal/pycore_interpframe.h>
#else
#include <internal/pycore_frame.h>
#endif
#if PY_VERSION_HEX < 0x030D0000
#undef _PyGC_FINALIZED  // Python 3.12 defines a function of this name for its own use
#undef HAVE_STD_ATOMIC  // C's atomic types are none of C++; the other ones of Python have the same layout
#include <internal/pycore_interp.h>
#endif
#endif

#include <cstdint>
#include <vector>

namespace mtprof {

// Where a frame is: its code, the instruction, and the module whose call it is (nullptr for other functions).
struct FramePosition {
  PyCodeObject* code;
  const void* module;
  int32_t instruction;

  bool operator==(const FramePosition& other) const {
    return code == other.code && instruction == other.instruction && module == other.module;
  }
};

// Which frames mean something: the code of `Module.__call__`, and code whose callers are not the user's.
struct KnownCode {
  PyCodeObject* module_call = nullptr;
  PyCodeObject* outermost = nullptr;
};

#if MTPROF_READS_FRAMES

inline _PyInterpreterFrame* innermost_frame(const PyThreadState* state) {
  if (state == nullptr) {
    return nullptr;
  }
#if PY_VERSION_HEX >= 0x030D0000
  return state->current_frame;
#else
  return state->cframe == nullptr ? nullptr : state->cframe->current_frame;
#endif
}

inline PyCodeObject* code_of(_PyInterpreterFrame* frame) {
#if PY_VERSION_HEX >= 0x030E0000
  return reinterpret_cast<PyCodeObject*>(PyStackRef_AsPyObjectBorrow(frame->f_executable));
#elif PY_VERSION_HEX >= 0x030D0000
  return reinterpret_cast<PyCodeObject*>(frame->f_executable);
#else
  return frame->f_code;
#endif
}

// The first argument of the call of a frame.
inline const void* first_argument(_PyInterpreterFrame* frame) {
#if PY_VERSION_HEX >= 0x030E0000
  return PyStackRef_AsPyObjectBorrow(frame->localsplus[0]);
#else
  return frame->localsplus[0];
#endif
}

// In a child that C code forked: no thread waits for the GIL there. Python is not told of such a fork. Without this, who
// releases the GIL waits until the thread that asked for it, which the child does not have, has taken it.
inline void forget_who_waits_for_gil() {
  PyThreadState* own = PyGILState_GetThisThreadState();
  if (own == nullptr) {
    return;
  }
#if PY_VERSION_HEX >= 0x030D0000
  constexpr uintptr_t kDropRequest = 1;  // `_PY_GIL_DROP_REQUEST_BIT`, in a header that is no C++
  __atomic_fetch_and(&own->eval_breaker, ~kDropRequest, __ATOMIC_SEQ_CST);
#else
  __atomic_store_n(&own->interp->ceval.gil_drop_request._value, 0, __ATOMIC_SEQ_CST);
#endif
}

// Fill `found` with the frames of a thread, innermost first: of the calling one, or of any while the GIL is held.
inline void walk(const PyThreadState* state, const KnownCode& known, std::vector<FramePosition>& found) {
  found.clear();
  for (_PyInterpreterFrame* frame = innermost_frame(state); frame != nullptr; frame = frame->previous) {
    if (_PyFrame_IsIncomplete(frame)) {
      continue;
    }
    PyCodeObject* code = code_of(frame);
    const void* module = code == known.module_call ? first_argument(frame) : nullptr;
    found.push_back({code, module, static_cast<int32_t>(_PyInterpreterFrame_LASTI(frame) * sizeof(_Py_CODEUNIT))});
    if (code == known.outermost) {
      break;
    }
  }
}

#else

inline void forget_who_waits_for_gil() {}

inline void walk(const PyThreadState*, const KnownCode&, std::vector<FramePosition>& found) {
  found.clear();
}

#endif

}  // namespace mtprof
