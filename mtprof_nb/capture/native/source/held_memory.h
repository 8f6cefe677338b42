// The bytes that were held as each row of a recording began, and as it ended.
#pragma once

#include "readout.h"

namespace mtprof {

// Times of blocks, in order, and the sums of their bytes before each and after all of them.
class HeldBytes {
 public:
  explicit HeldBytes(const std::vector<PlacedBlock>& blocks) {
    times_.reserve(blocks.size());
    totals_.reserve(blocks.size() + 1);
    totals_.push_back(0);
    for (const PlacedBlock& placed : blocks) {
      times_.push_back(placed.block.time);
      totals_.push_back(totals_.back() + placed.block.nbytes);
    }
  }

  // The bytes held before `moment`, which must not be earlier than in the call before.
  int64_t before(int64_t moment) {
    while (at_ < times_.size() && times_[at_] < moment) {
      ++at_;
    }
    return totals_[at_];
  }

  // The bytes held at `moment`, which must not be earlier than that of the last call of `before`. Most ops end soon.
  int64_t at(int64_t moment) const {
    size_t first = at_, step = 1;
    while (first + step <= times_.size() && times_[first + step - 1] <= moment) {
      first += step;
      step *= 2;
    }
    const auto begin = times_.begin() + static_cast<std::ptrdiff_t>(first);
    const auto end = times_.begin() + static_cast<std::ptrdiff_t>(std::min(first + step, times_.size()));
    return totals_[static_cast<size_t>(std::upper_bound(begin, end, moment) - times_.begin())];
  }

 private:
  std::vector<int64_t> times_, totals_;
  size_t at_ = 0;
};

inline void read_held(
    const std::vector<PlacedRow>& rows, const std::vector<PlacedBlock>& blocks, bool is_noted, const Owned& found) {
  const size_t count = is_noted ? rows.size() : 0;
  Column<int64_t> before(count), after(count);
  HeldBytes held(blocks);
  for (size_t position = 0; position < count; ++position) {
    const Row& row = *rows[position].row;
    before[position] = held.before(row.start);
    after[position] = held.at(row.end);
  }
  before.into(found, "held_before");
  after.into(found, "held_after");
}

}  // namespace mtprof
