// The clock of a recording: nanoseconds of the monotonic clock, which `time.perf_counter_ns` reads too.
#pragma once

#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <fstream>
#include <string>

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <x86intrin.h>
#define MTPROF_HAS_COUNTER 1
#else
#define MTPROF_HAS_COUNTER 0
#endif

namespace mtprof {

inline int64_t now_ns() {
  struct timespec moment;
  clock_gettime(CLOCK_MONOTONIC, &moment);
  return static_cast<int64_t>(moment.tv_sec) * 1000000000 + moment.tv_nsec;
}

// The processor's counter: to read it takes less than half as long as to ask the system for the time.
inline uint64_t read_counter() {
#if MTPROF_HAS_COUNTER
  return __rdtsc();
#else
  return 0;
#endif
}

// Whether the system itself makes its monotonic clock of that counter: then it runs evenly, and alike on all cores.
inline bool counter_is_the_clock() {
#if MTPROF_HAS_COUNTER
  static const bool found = [] {
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    const bool is_invariant = __get_cpuid(0x80000007, &eax, &ebx, &ecx, &edx) != 0 && (edx & (1u << 8)) != 0;
    std::ifstream file("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    std::string source;
    return is_invariant && file >> source && source == "tsc";
  }();
  return found;
#else
  return false;
#endif
}

// The clock of one thread. It reads the counter, and for at most a millisecond at a time: then it reads both, so that it
// follows the monotonic clock also where the system adjusts that. It never runs backwards.
class ThreadClock {
 public:
  int64_t now() {
    // A counter that went back has passed nearly all of its range.
    const uint64_t passed = read_counter() - anchor_.ticks;
    if (passed < reach_) {
      last_ = std::max(last_, anchor_.ns + static_cast<int64_t>((passed * slope_) >> kFractionBits));
    } else {
      last_ = std::max(last_, counter_is_the_clock() ? anchored() : now_ns());
    }
    return last_;
  }

 private:
  struct Moment {
    uint64_t ticks = 0;
    int64_t ns = 0;
  };
  static constexpr int kFractionBits = 32;
  static constexpr int64_t kReach = 1000000;
  // A slope is measured over at least, and at most, so many nanoseconds.
  static constexpr int64_t kShortest = 16000000, kLongest = 500000000;
  // Both were read at one moment if no more ticks lie between.
  static constexpr uint64_t kOneMoment = 2000;

  // Read counter and clock at one moment; false where the thread was interrupted in between each time.
  static bool read_both(Moment& found) {
    for (int attempt = 0; attempt < 3; ++attempt) {
      const uint64_t before = read_counter();
      found.ns = now_ns();
      const uint64_t between = read_counter() - before;
      found.ticks = before + between / 2;
      if (between < kOneMoment) {
        return true;
      }
    }
    return false;
  }

  int64_t anchored() {
    Moment now;
    if (!read_both(now)) {
      return now.ns;
    }
    measure_slope(now);
    anchor_ = now;
    reach_ = slope_ == 0 ? 0 : (static_cast<uint64_t>(kReach) << kFractionBits) / slope_;
    return now.ns;
  }

  // Nanoseconds of a tick, as far as they are known: measured between `base_` and now.
  void measure_slope(const Moment& now) {
    static std::atomic<uint64_t> known{0};
    if (slope_ == 0) {
      slope_ = known.load(std::memory_order_relaxed);
    }
    const int64_t passed = now.ns - base_.ns;
    if (base_.ticks == 0 || now.ticks <= base_.ticks || passed > 2 * kLongest) {
      base_ = now;
      return;
    }
    if (passed < kShortest) {
      return;
    }
    const double ratio = static_cast<double>(passed) / static_cast<double>(now.ticks - base_.ticks);
    const auto found = static_cast<uint64_t>(ratio * static_cast<double>(uint64_t{1} << kFractionBits));
    // The machine slept, or its clock is being put right: nothing is known until the next measurement.
    const bool is_steady = slope_ == 0 || (found > slope_ - slope_ / 100 && found < slope_ + slope_ / 100);
    slope_ = is_steady ? found : 0;
    known.store(slope_, std::memory_order_relaxed);
    if (!is_steady || passed > kLongest) {
      base_ = now;
    }
  }

  Moment anchor_, base_;
  uint64_t reach_ = 0, slope_ = 0;
  int64_t last_ = 0;
};

}  // namespace mtprof
