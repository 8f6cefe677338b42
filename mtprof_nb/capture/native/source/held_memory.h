// The bytes that were held as each row of a recording began, and as it ended.
#pragma once

#include "readout.h"

namespace mtprof {

// Blocks in order of time, whose `total` is what was held after each.
class HeldBytes {
 public:
  explicit HeldBytes(const std::vector<PlacedBlock>& blocks) : blocks_(blocks) {}

  // The bytes held before `moment`, which must not be earlier than in the call before.
  int64_t before(int64_t moment) {
    while (at_ < blocks_.size() && blocks_[at_].block.time < moment) {
      ++at_;
    }
    return after_first(at_);
  }

  // The bytes held at `moment`, which must not be earlier than that of the last call of `before`. Most ops end soon.
  int64_t at(int64_t moment) const {
    size_t first = at_, step = 1;
    while (first + step <= blocks_.size() && blocks_[first + step - 1].block.time <= moment) {
      first += step;
      step *= 2;
    }
    const auto begin = blocks_.begin() + static_cast<std::ptrdiff_t>(first);
    const auto end = blocks_.begin() + static_cast<std::ptrdiff_t>(std::min(first + step, blocks_.size()));
    const auto later = [](int64_t time, const PlacedBlock& placed) { return time < placed.block.time; };
    return after_first(static_cast<size_t>(std::upper_bound(begin, end, moment, later) - blocks_.begin()));
  }

 private:
  int64_t after_first(size_t count) const {
    return count == 0 ? 0 : blocks_[count - 1].total;
  }

  const std::vector<PlacedBlock>& blocks_;
  size_t at_ = 0;
};

// A scope has -1: it holds nothing itself.
inline void read_held(
    const std::vector<PlacedRow>& rows, const std::vector<PlacedBlock>& blocks, bool is_noted, const Owned& found) {
  const size_t count = is_noted ? rows.size() : 0;
  Column<int64_t> before(count), after(count);
  std::vector<PlacedBlock> of_cpu;
  const auto is_elsewhere = [](const PlacedBlock& placed) { return placed.block.device_type != 0; };
  const bool has_others = std::any_of(blocks.begin(), blocks.end(), is_elsewhere);
  if (has_others) {
    std::remove_copy_if(blocks.begin(), blocks.end(), std::back_inserter(of_cpu), is_elsewhere);
  }
  HeldBytes held(has_others ? of_cpu : blocks);
  for (size_t position = 0; position < count; ++position) {
    const Row& row = *rows[position].row;
    const int64_t at_start = held.before(row.start);
    const bool is_scope = row.scope == static_cast<uint8_t>(at::RecordScope::USER_SCOPE);
    before[position] = is_scope ? -1 : at_start;
    after[position] = is_scope ? -1 : held.at(row.end);
  }
  before.into(found, "held_before");
  after.into(found, "held_after");
}

}  // namespace mtprof
