// Times of the processor's counter in the past, as nanoseconds of the monotonic clock.
#pragma once

#include <algorithm>
#include <limits>
#include <mutex>
#include <new>
#include <vector>

#include "counter.h"

namespace mtprof {

// Readings of both, from `begin` to `end`. The threads that record add some, so that a clock which
// the system adjusts meanwhile is followed in a recording of hours, too.
class TickTimes {
 public:
  static TickTimes& instance() {
    static TickTimes* const found = new TickTimes();
    return *found;
  }

  void begin() {
    std::lock_guard<std::mutex> held(mutex_);
    readings_.assign(1, read_closely());
    next_.store(readings_.back().ns + kApart, std::memory_order_relaxed);
  }

  // Note a reading, unless there is one of the last tenth of a second. Never fails: a reading more
  // or less is the same.
  void add(const Moment& reading) {
    if (reading.ns < next_.load(std::memory_order_relaxed)) {
      return;
    }
    std::unique_lock<std::mutex> held(mutex_, std::try_to_lock);
    if (!held.owns_lock() || readings_.empty() || reading.ticks <= readings_.back().ticks) {
      return;
    }
    try {
      readings_.push_back(reading);
    } catch (const std::bad_alloc&) {
    }
    next_.store(reading.ns + kApart, std::memory_order_relaxed);
  }

  void end() {
    std::lock_guard<std::mutex> held(mutex_);
    next_.store(std::numeric_limits<int64_t>::max(), std::memory_order_relaxed);
    const Moment last = read_closely();
    if (!readings_.empty() && last.ticks > readings_.back().ticks) {
      readings_.push_back(last);
    }
  }

  // In a forked child, where another thread may have held the lock.
  void after_fork() {
    new (&mutex_) std::mutex();
    next_.store(std::numeric_limits<int64_t>::max(), std::memory_order_relaxed);
  }

  // Nanoseconds of `ticks`, after `end`. Outside of the readings, the first or last slope goes on.
  int64_t ns(uint64_t ticks) const {
    if (readings_.size() < 2) {
      return readings_.empty() ? 0 : readings_[0].ns;
    }
    const auto later = [](uint64_t one, const Moment& reading) { return one < reading.ticks; };
    auto after = std::upper_bound(readings_.begin() + 1, readings_.end() - 1, ticks, later);
    const Moment &to = *after, &from = *(after - 1);
    const auto ticks_between = static_cast<double>(to.ticks - from.ticks);
    const double slope = static_cast<double>(to.ns - from.ns) / ticks_between;
    const auto passed = static_cast<int64_t>(ticks - from.ticks);
    return from.ns + static_cast<int64_t>(static_cast<double>(passed) * slope);
  }

 private:
  static constexpr int64_t kApart = 100000000;

  // Of several readings the one that took least: it is the most exact.
  static Moment read_closely() {
    Moment best;
    uint64_t shortest = std::numeric_limits<uint64_t>::max();
    for (int attempt = 0; attempt < 64; ++attempt) {
      const uint64_t before = read_counter();
      const int64_t ns = now_ns();
      const uint64_t between = read_counter() - before;
      if (between < shortest) {
        shortest = between;
        best = {before + between / 2, ns};
      }
    }
    return best;
  }

  std::mutex mutex_;
  std::vector<Moment> readings_;
  std::atomic<int64_t> next_{std::numeric_limits<int64_t>::max()};
};

}  // namespace mtprof
