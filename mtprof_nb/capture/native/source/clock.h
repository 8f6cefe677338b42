// The clock of a recording: nanoseconds of the monotonic clock, which `time.perf_counter_ns` reads too.
#pragma once

#include "tick_times.h"

namespace mtprof {

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
    TickTimes::instance().add(now);
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
