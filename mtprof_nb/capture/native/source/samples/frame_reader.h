// The Python frames of other threads, read where these are, while they run.
//
// No lock is taken and no thread is asked for anything. What is read may therefore change meanwhile, and be freed: all
// reads are checked ones, all that was read is taken for a stack only where it can be one.
#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "../checked_memory.h"
#include "../python_frames.h"

namespace mtprof {

#if MTPROF_READS_FRAMES

// How sure it is that a thread was at the place that was read.
enum Certainty : int8_t {
  kSure = 0,
  kMoved = 1,  // a call began or ended meanwhile: the place may be the one before or after it
};

// A thread of Python. Its state is an address only: it may be freed at any time.
struct FoundThread {
  const PyThreadState* state;
  int64_t native_id;
};

// Where the frames of a thread were at its last sample; likely they are there again.
struct ReadThread {
#if PY_VERSION_HEX < 0x030D0000
  const _PyCFrame* top_at = nullptr;
#endif
  const char* chunk = nullptr;  // of the memory in which Python stacks its frames
  const char* end = nullptr;    // of what is in use there
  size_t room = 0;              // how much more of what follows is copied, for frames that are new then
};

class FrameReader {
 public:
  enum Result { kStack, kNothing, kTorn };

  explicit FrameReader(CheckedMemory& memory) : memory_(memory), copy_(kCopied) {}

  // Fill `found` with all threads of an interpreter.
  void threads(PyInterpreterState* interpreter, std::vector<FoundThread>& found) {
    found.clear();
    PyThreadState state;
    for (PyThreadState* one = PyInterpreterState_ThreadHead(interpreter); one != nullptr && found.size() < kMostThreads;
         one = state.next) {
      if (!memory_.read(one, &state, sizeof(state)) || state.interp != interpreter) {
        break;  // it has ended meanwhile: the others are found the next time
      }
      found.push_back({one, static_cast<int64_t>(state.native_thread_id)});
    }
  }

  // Fill `frames`, innermost first.
  Result read(const PyThreadState* address, PyInterpreterState* interpreter, const KnownCode& known, ReadThread& thread,
              std::vector<FramePosition>& frames) {
    frames.clear();
    is_cut = false;
    certainty = kMoved;
    const Frame* top = nullptr;
    Result begun = read_top(address, interpreter, thread, top);
    if (begun == kStack && !is_whole_) {  // now it is known where to look
      begun = read_top(address, interpreter, thread, top);
    }
    if (begun != kStack) {
      return begun;
    }
    size_t steps = 0;  // frames of C code are not added: torn ones that lead to each other would have no end
    for (const Frame* at = top; at != nullptr; ++steps) {
      Frame frame;
      if (at == top) {
        choose_copy(top);
      }
      if (steps > kMostSteps || reinterpret_cast<uintptr_t>(at) % alignof(Frame) != 0 ||
          !frame_at(at, frame, frames.size())) {
        return kTorn;
      }
      if (at == top && !is_copied(top)) {
        certainty = is_as_before(address, thread, top, frame) ? kSure : kMoved;
      }
      if (is_of_python(frame)) {
        PyCodeObject* code = code_of(&frame);
        // As numbers: what was read may be no addresses.
        const auto first = reinterpret_cast<uintptr_t>(code) + offsetof(PyCodeObject, co_code_adaptive);
        const auto instruction = static_cast<int64_t>(reinterpret_cast<uintptr_t>(instruction_of(frame)) - first);
        if (instruction < -kUnit || instruction > kLargestCode) {
          return kTorn;
        }
        frames.push_back({code, nullptr, static_cast<int32_t>(instruction)});
        if (code == known.outermost) {
          break;
        }
      }
      if (frame.previous == at) {
        return kTorn;
      }
      at = frame.previous;
      if (frames.size() >= kDeepest && at != nullptr) {
        is_cut = true;
        break;
      }
    }
    return frames.empty() ? kNothing : kStack;
  }

  // Of the last stack: whether its outermost frames were left out, and how sure its innermost frame is.
  bool is_cut = false;
  Certainty certainty = kSure;

 private:
  using Frame = _PyInterpreterFrame;
  static constexpr size_t kFrame = offsetof(Frame, localsplus);
  static constexpr size_t kMostThreads = 10000, kDeepest = 4000, kMostSteps = 2 * kDeepest;
  static constexpr size_t kCopied = size_t{1} << 16;
  // The innermost frames are copied first, right after the address of the top: it is about them that time matters.
  static constexpr size_t kInnermost = 1024, kRoom = 512;
  static constexpr ptrdiff_t kUnit = sizeof(_Py_CODEUNIT), kLargestCode = ptrdiff_t{1} << 28;

  static bool is_of_python([[maybe_unused]] const Frame& frame) {
#if PY_VERSION_HEX >= 0x030E0000
    return frame.owner < FRAME_OWNED_BY_INTERPRETER;
#elif PY_VERSION_HEX >= 0x030C0000
    return frame.owner != FRAME_OWNED_BY_CSTACK;
#else
    return true;
#endif
  }

  static const _Py_CODEUNIT* instruction_of(const Frame& frame) {
#if PY_VERSION_HEX >= 0x030D0000
    return frame.instr_ptr;
#else
    return frame.prev_instr;
#endif
  }

  // Copy the thread's state, the address of its top, and the frames that are likely to be in use: all with one call.
  Result read_top(const PyThreadState* address, PyInterpreterState* interpreter, ReadThread& thread, const Frame*& top) {
    PyThreadState state;
    const size_t used = thread.chunk == nullptr ? 0 : static_cast<size_t>(thread.end - thread.chunk);
    inner_size_ = std::min(used, kInnermost) + thread.room;
    inner_ = thread.end + thread.room - inner_size_;
    outer_size_ = std::min(used + thread.room - inner_size_, copy_.size());
    outer_ = inner_ - outer_size_;
    Piece pieces[5];
    size_t count = 0, whole = 0;
    const auto add = [&](const void* from, void* to, size_t size) {
      if (from != nullptr && size > 0) {
        pieces[count++] = {from, to, size};
        whole += size;
      }
    };
    add(address, &state, sizeof(state));
    add(inner_, before_copy_, inner_size_);
    add(top_address(address, thread), &top, sizeof(top));
    add(inner_, after_copy_, inner_size_);
    add(outer_, copy_.data(), outer_size_);
    const size_t got = memory_.read(pieces, count);
    if (got < sizeof(state) || state.interp != interpreter) {
      return kTorn;
    }
    is_whole_ = used > 0 && got == whole;
    expect(thread, state);
#if PY_VERSION_HEX < 0x030D0000
    is_whole_ = is_whole_ && thread.top_at == state.cframe;
    thread.top_at = state.cframe;
    if (state.cframe == nullptr) {
      return kNothing;
    }
#endif
    if (!is_whole_) {
      inner_size_ = outer_size_ = 0;
      if (!memory_.read(top_address(address, thread), &top, sizeof(top))) {
        return kTorn;
      }
    }
    return top == nullptr ? kNothing : kStack;
  }

  static const void* top_address([[maybe_unused]] const PyThreadState* address, [[maybe_unused]] const ReadThread& thread) {
#if PY_VERSION_HEX < 0x030D0000
    const _PyCFrame* holder = thread.top_at;
    return holder == nullptr ? nullptr : reinterpret_cast<const char*>(holder) + offsetof(_PyCFrame, current_frame);
#else
    return reinterpret_cast<const char*>(address) + offsetof(PyThreadState, current_frame);
#endif
  }

  // Note what the next sample copies: the memory that is in use now, and room for some frames more.
  static void expect(ReadThread& thread, const PyThreadState& state) {
    const auto* chunk = reinterpret_cast<const char*>(state.datastack_chunk);
    const auto* end = reinterpret_cast<const char*>(state.datastack_top);
    const auto* limit = reinterpret_cast<const char*>(state.datastack_limit);
    const bool is_there = chunk != nullptr && end > chunk && limit >= end;
    thread.chunk = is_there ? chunk : nullptr;
    thread.end = is_there ? end : nullptr;
    thread.room = is_there ? std::min(static_cast<size_t>(limit - end), kRoom) : 0;
  }

  bool copied(const Frame* at, const char* from, const char* copy, size_t size, Frame& frame) const {
    const auto* address = reinterpret_cast<const char*>(at);
    if (address < from || address + kFrame > from + size) {
      return false;
    }
    std::memcpy(static_cast<void*>(&frame), copy + (address - from), kFrame);
    return true;
  }

  // A frame from what was copied; from elsewhere (a generator, older memory of frames) with a call of its own.
  bool frame_at(const Frame* at, Frame& frame, size_t depth) {
    if (copied(at, inner_, inner_copy_, inner_size_, frame) || copied(at, outer_, copy_.data(), outer_size_, frame)) {
      return true;
    }
    // The callers of a frame lie before it: of a deep stack they are copied together.
    constexpr size_t kMany = 16, kBefore = 8192;
    const char* from = reinterpret_cast<const char*>(at) + kFrame - kBefore;
    if (depth >= kMany && memory_.read(from, copy_.data(), kBefore)) {
      outer_ = from;
      outer_size_ = kBefore;
      return copied(at, outer_, copy_.data(), outer_size_, frame);
    }
    return memory_.read(at, &frame, kFrame);
  }

  bool is_copied(const Frame* at) const {
    Frame unused;
    return copied(at, inner_, inner_copy_, inner_size_, unused);
  }

  // Take the innermost frames from the copy before or after the address of the top was read, in turns: where these
  // differ, the thread was at either, and neither earlier nor later places get more than their share.
  void choose_copy(const Frame* top) {
    Frame before, after;
    inner_copy_ = after_copy_;
    if (copied(top, inner_, before_copy_, inner_size_, before) && copied(top, inner_, after_copy_, inner_size_, after)) {
      const bool is_same_caller = before.previous == after.previous;
      certainty = is_same_caller && code_of(&before) == code_of(&after) ? kSure : kMoved;
      takes_before_ = !takes_before_;
      inner_copy_ = is_same_caller && takes_before_ ? before_copy_ : after_copy_;
    }
  }

  // Whether the thread was in the same call before and after its innermost frame was read, one that is elsewhere.
  bool is_as_before(const PyThreadState* address, const ReadThread& thread, const Frame* top, const Frame& frame) {
    Frame again;
    const Frame* top_again = nullptr;
    const Piece pieces[] = {{top, &again, kFrame}, {top_address(address, thread), &top_again, sizeof(top_again)}};
    return memory_.read(pieces, 2) == kFrame + sizeof(top_again) && top_again == top &&
           code_of(&again) == code_of(const_cast<Frame*>(&frame)) && again.previous == frame.previous;
  }

  CheckedMemory& memory_;
  std::vector<char> copy_;
  char before_copy_[kInnermost + kRoom], after_copy_[kInnermost + kRoom];
  const char* inner_copy_ = after_copy_;
  const char* inner_ = nullptr;
  const char* outer_ = nullptr;
  size_t inner_size_ = 0, outer_size_ = 0;
  bool is_whole_ = false, takes_before_ = false;
};

#endif

}  // namespace mtprof
