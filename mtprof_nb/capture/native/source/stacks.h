// Python stacks as numbers: a stack is a node of a tree that all threads share.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "codes.h"

namespace mtprof {

// Whether the interpreter is about to end.
inline bool is_finalizing() {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsFinalizing() != 0;
#else
  return _Py_IsFinalizing() != 0;
#endif
}

// A state for the calling thread; nullptr for want of memory. Does not need the GIL, which may not be free for long.
inline PyThreadState* new_thread_state(PyInterpreterState* interpreter) {
#if PY_VERSION_HEX < 0x030C0000
  return _PyThreadState_Prealloc(interpreter);  // `PyThreadState_New` ends the process for want of memory
#else
  return PyThreadState_New(interpreter);
#endif
}

// Numbers of the frame around it, of its code and of its module (-1: none).
struct StackNode {
  int32_t parent;
  int32_t code;
  int32_t instruction;
  int32_t module;

  bool operator==(const StackNode& other) const {
    return parent == other.parent && code == other.code && instruction == other.instruction && module == other.module;
  }
};

struct StackNodeHash {
  size_t operator()(const StackNode& node) const {
    return hash_of(reinterpret_cast<const char*>(&node), sizeof(node));
  }
};

// A module instance that was called. Only its address is kept, so that it may be freed.
struct CalledModule {
  const void* address;
  std::string type;
};

class StackTree {
 public:
  // `node` returns this for a frame whose code cannot be read.
  static constexpr int32_t kUnreadable = -2;

  ~StackTree() {
    stop_holding();
  }

  // The node of `frame` inside the node `parent`; `parent` where the frame is only being made. Sets `is_held` where its
  // address means the same code from now on.
  template <typename Memory>
  int32_t node(Memory& memory, int32_t parent, const FramePosition& frame, bool& is_held) {
    std::lock_guard<std::mutex> held(mutex_);
    const int32_t code = codes_.number(memory, frame.code, is_held);
    if (code < 0 || frame.instruction > codes_[code].size) {
      return kUnreadable;
    }
    if (!is_held) {
      ask_to_hold();
    }
    if (frame.instruction < codes_[code].begins) {
      return parent;
    }
    const int32_t module = frame.module == nullptr ? -1 : module_number(memory, frame.module);
    make_room(nodes_);
    const auto [found, is_new] =
        numbers_.try_emplace({parent, code, frame.instruction, module}, static_cast<int32_t>(nodes_.size()));
    if (is_new) {
      nodes_.push_back(found->first);
    }
    return found->second;
  }

  // Begin to hold references to codes that are met, in a thread that may wait for the GIL. Without it, all is right but
  // slower: each meeting of a code copies what is known of it. The codes of the calling thread, which must hold the GIL,
  // are held at once: they are around all that it runs next.
  //
  // The address of a code that is gone may hold what looks like it. A tree whose codes are met by the threads that run them
  // is `told` of each code that is freed. Another one may meet a code as it is freed: it holds those of frames alone.
  void start_holding(const KnownCode& known, bool is_told) {
    interpreter_ = PyInterpreterState_Get();
    if (is_told && install()) {
      told() = this;
    }
    try {
      OwnMemory memory;
      std::vector<FramePosition> frames;
      walk(PyThreadState_Get(), known, frames);
      std::lock_guard<std::mutex> held(mutex_);
      for (const FramePosition& frame : frames) {
        bool is_held = false;
        codes_.number(memory, frame.code, is_held);
        codes_.hold(frame.code);
      }
      holder_ = std::thread([this] { hold_codes(); });
    } catch (const std::exception&) {
      // The system starts no thread, or has no memory for it.
    }
  }

  // End that thread. The GIL must not be held.
  void stop_holding() {
    if (!holder_.joinable()) {
      return;
    }
    {
      std::lock_guard<std::mutex> held(asking_);
      is_stopping_ = true;
    }
    is_asked_changed_.notify_all();
    holder_.join();
  }

  // The tree that is told of codes that are freed, or nullptr. Changes while the GIL is held, and in a forked child.
  static std::atomic<StackTree*>& told() {
    static std::atomic<StackTree*> found{nullptr};
    return found;
  }

  // Release the codes, after `stop_holding`. The GIL must be held.
  void close() {
    if (told() == this) {
      told() = nullptr;
      if (PyCode_Type.tp_dealloc == &tell_and_free) {
        PyCode_Type.tp_dealloc = std::exchange(free_code(), nullptr);
      }
    }
    std::unordered_map<PyCodeObject*, int32_t> released;
    {
      std::lock_guard<std::mutex> held(mutex_);
      released = codes_.release();
    }
    for (const auto& [code, number] : released) {
      Py_DECREF(code);
    }
  }

  const std::vector<StackNode>& nodes() const {
    return nodes_;
  }
  const CodeTable& codes() const {
    return codes_;
  }
  const std::vector<CalledModule>& modules() const {
    return modules_;
  }
  std::mutex& mutex() {
    return mutex_;
  }

 private:
  // A code that is new comes with others, and to take the GIL disturbs the program: that becomes rarer.
  static constexpr std::chrono::microseconds kLongest{4000};

  template <typename Memory>
  int32_t module_number(Memory& memory, const void* address) {
    const auto known = module_numbers_.find(address);
    if (known != module_numbers_.end()) {
      return known->second;
    }
    CalledModule called{address, type_name(memory, address)};
    make_room(modules_);
    const int32_t number = static_cast<int32_t>(modules_.size());
    module_numbers_.emplace(address, number);
    modules_.push_back(std::move(called));
    return number;
  }

  // The name of the type of an object. Another thread may replace the text, and free it.
  template <typename Memory>
  std::string type_name(Memory& memory, const void* address) {
    PyObject object;
    const char* at = nullptr;
    if (!memory.read(address, &object, sizeof(object)) ||
        !memory.read(reinterpret_cast<const char*>(object.ob_type) + offsetof(PyTypeObject, tp_name), &at, sizeof(at))) {
      return std::string();
    }
    std::string text;
    char block[256];  // parts of memory of this size, at a multiple of it, are mapped as a whole or not at all
    while (text.size() < kLongestText) {
      const size_t size = sizeof(block) - reinterpret_cast<uintptr_t>(at) % sizeof(block);
      if (!checked_.read(at, block, size)) {
        break;
      }
      const void* end = std::memchr(block, 0, size);
      if (end != nullptr) {
        return text.append(block, static_cast<size_t>(static_cast<const char*>(end) - block));
      }
      text.append(block, size);
      at += size;
    }
    return text;
  }

  void ask_to_hold() {
    if (!is_asked_.exchange(true)) {
      { std::lock_guard<std::mutex> held(asking_); }  // the thread is waiting, or has not looked yet
      is_asked_changed_.notify_one();
    }
  }

  // The thread that waits for the GIL, so that no other one has to.
  void hold_codes() {
    PyThreadState* const own = new_thread_state(interpreter_);
    if (own == nullptr) {
      return;
    }
    while (wait_until_asked() && !is_finalizing()) {
      PyEval_RestoreThread(own);
      try {
        hold_living();
      } catch (const std::bad_alloc&) {
        // The codes stay without a reference, and are copied at each meeting.
      }
      PyEval_SaveThread();
    }
    if (!is_finalizing()) {  // who asks for the GIL then never gets it
      PyEval_RestoreThread(own);
      PyThreadState_Clear(own);
      PyThreadState_DeleteCurrent();
    }
  }

  // Python's function that frees a code; nullptr while ours does not stand before it.
  static destructor& free_code() {
    static destructor found = nullptr;
    return found;
  }

  // False where somebody has put another function before ours, which may not call it.
  static bool install() {
    if (free_code() == nullptr) {
      free_code() = PyCode_Type.tp_dealloc;
      PyCode_Type.tp_dealloc = &tell_and_free;
    }
    return PyCode_Type.tp_dealloc == &tell_and_free;
  }

  static void tell_and_free(PyObject* code) {
    StackTree* tree = told();
    if (tree != nullptr) {
      std::lock_guard<std::mutex> held(tree->mutex_);
      tree->codes_.forget(reinterpret_cast<PyCodeObject*>(code));
    }
    free_code()(code);
  }

  // Hold the codes that were met and are there for certain. The GIL must be held.
  void hold_living() {
    std::lock_guard<std::mutex> held(mutex_);
    if (told() == this) {
      codes_.hold_waiting();
    }
    std::vector<FramePosition> frames;
    for (PyThreadState* one = told() == this ? nullptr : PyInterpreterState_ThreadHead(interpreter_); one != nullptr;
         one = PyThreadState_Next(one)) {
      walk(one, KnownCode{}, frames);
      for (const FramePosition& frame : frames) {
        codes_.hold(frame.code);
      }
    }
    codes_.forget_waiting();
  }

  // False at the end.
  bool wait_until_asked() {
    std::unique_lock<std::mutex> held(asking_);
    is_asked_changed_.wait(held, [this] { return is_stopping_ || is_asked_.load(); });
    is_asked_changed_.wait_for(held, gathering_, [this] { return is_stopping_; });
    gathering_ = std::min(gathering_ * 2, kLongest);
    is_asked_.store(false);
    return !is_stopping_;
  }

  std::mutex mutex_;
  std::vector<StackNode> nodes_;
  std::unordered_map<StackNode, int32_t, StackNodeHash> numbers_;
  CodeTable codes_;
  std::vector<CalledModule> modules_;
  std::unordered_map<const void*, int32_t> module_numbers_;
  CheckedMemory checked_;
  PyInterpreterState* interpreter_ = nullptr;
  std::thread holder_;
  std::mutex asking_;
  std::condition_variable is_asked_changed_;
  std::atomic<bool> is_asked_{false};
  bool is_stopping_ = false;
  std::chrono::microseconds gathering_{125};
};

}  // namespace mtprof
