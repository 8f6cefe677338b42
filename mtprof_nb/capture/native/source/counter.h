// The monotonic clock, which `time.perf_counter_ns` reads too, and the counter of the processor.
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

// The processor's counter: to read it takes less than half as long as to ask the system for the
// time.
inline uint64_t read_counter() {
#if MTPROF_HAS_COUNTER
  return __rdtsc();
#else
  return 0;
#endif
}

// Whether the system itself makes its monotonic clock of that counter: then it runs evenly, and
// alike on all cores.
inline bool counter_is_the_clock() {
#if MTPROF_HAS_COUNTER
  static const bool found = [] {
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    const bool is_told = __get_cpuid(0x80000007, &eax, &ebx, &ecx, &edx) != 0;
    const bool is_invariant = is_told && (edx & (1u << 8)) != 0;
    std::ifstream file("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    std::string source;
    return is_invariant && file >> source && source == "tsc";
  }();
  return found;
#else
  return false;
#endif
}

// One moment by both.
struct Moment {
  uint64_t ticks = 0;
  int64_t ns = 0;
};

}  // namespace mtprof
