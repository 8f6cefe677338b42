// Facts that the system tells about threads of this process: whether they sleep, and for how long they were awake.
#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <unordered_map>

#include "../clock.h"

namespace mtprof {

// A file in which Linux tells of each thread. Some stay open, which is faster; the others are opened for each reading.
class ThreadFiles {
 public:
  explicit ThreadFiles(const char* name) : name_(name) {
    rlimit limit{};
    const bool is_known = getrlimit(RLIMIT_NOFILE, &limit) == 0;
    most_ = std::min<size_t>(kMostOpen, is_known ? static_cast<size_t>(limit.rlim_cur) / kShare : 0);
  }

  ~ThreadFiles() {
    for (const auto& [native_id, file] : files_) {
      close(file);
    }
  }
  ThreadFiles(const ThreadFiles&) = delete;
  ThreadFiles& operator=(const ThreadFiles&) = delete;

  // Fill `text`, which is empty where the file cannot be read: the thread has ended, or the process has no file left.
  void read(int64_t native_id, std::string& text) {
    text.clear();
    char read[512];
    const auto kept = files_.find(native_id);
    const int file = kept != files_.end() ? kept->second : opened(native_id);
    if (file < 0) {
      return;
    }
    const ssize_t count = pread(file, read, sizeof(read), 0);
    if (count <= 0 && kept != files_.end()) {
      files_.erase(kept);
    }
    if (count <= 0 || (kept == files_.end() && !keep(native_id, file))) {
      close(file);
    }
    text.assign(read, count > 0 ? static_cast<size_t>(count) : 0);
  }

 private:
  static constexpr size_t kMostOpen = 64, kShare = 16;

  int opened(int64_t native_id) const {
    char path[64];
    std::snprintf(path, sizeof(path), "/proc/self/task/%lld/%s", static_cast<long long>(native_id), name_);
    return open(path, O_RDONLY | O_CLOEXEC);
  }

  bool keep(int64_t native_id, int file) {
    try {
      return files_.size() < most_ && files_.emplace(native_id, file).second;
    } catch (const std::bad_alloc&) {
      return false;
    }
  }

  const char* const name_;
  size_t most_ = 0;
  std::unordered_map<int64_t, int> files_;
};

// The time that a thread has computed, and how long it was awake: it computed, or waited for a processor. -1: unknown.
struct ThreadTimes {
  int64_t computed = -1;
  int64_t awake = -1;
};

class ThreadStates {
 public:
  enum State : int8_t { kUnknown = -1, kAwake = 0, kAsleep = 1 };

  // Where no file tells, a thread is asleep if it has not computed since `before`.
  State state(int64_t native_id, const ThreadTimes& before) {
    states_.read(native_id, text_);
    const size_t name_ends = text_.rfind(") ");  // the name of a thread may hold any character
    if (name_ends != std::string::npos && name_ends + 2 < text_.size()) {
      return text_[name_ends + 2] == 'R' ? kAwake : kAsleep;
    }
    return before.computed < 0 ? kUnknown : computed(native_id) == before.computed ? kAsleep : kAwake;
  }

  ThreadTimes times(int64_t native_id) {
    ThreadTimes found{computed(native_id), -1};
    waits_.read(native_id, text_);
    const size_t ran = text_.find(' ');
    if (ran != std::string::npos && found.computed >= 0) {
      found.awake = found.computed + std::strtoll(text_.c_str() + ran, nullptr, 10);
    }
    return found;
  }

  // The time in which this thread was not awake, from a moment of its own on; -1: unknown.
  static int64_t own_sleep(int64_t native_id) {
    try {
      const int64_t awake = ThreadStates().times(native_id).awake;
      return awake < 0 ? -1 : now_ns() - awake;
    } catch (const std::bad_alloc&) {
      return -1;
    }
  }

  static int64_t computed([[maybe_unused]] int64_t native_id) {
#ifdef __linux__
    // Linux's number of the clock of a thread.
    const auto clock = static_cast<clockid_t>((~static_cast<unsigned int>(native_id) << 3) | 6);
    timespec found;
    if (clock_gettime(clock, &found) == 0) {
      return found.tv_sec * 1000000000LL + found.tv_nsec;
    }
#endif
    return -1;
  }

 private:
  ThreadFiles states_{"stat"}, waits_{"schedstat"};
  std::string text_;
};

}  // namespace mtprof
