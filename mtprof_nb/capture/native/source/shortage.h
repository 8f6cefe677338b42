// A recording for which there is not enough memory to read it: its end is left out.
#pragma once

#include <algorithm>
#include <limits>
#include <memory>

#include "recording.h"

namespace mtprof {

// Keep what began before `until` alone, for want of memory to read it all.
inline void cut(Recording& recording, int64_t until) {
  for (TakenThread& thread : recording.taken) {
    const size_t rows = thread.rows.count();
    const auto keep = [&](auto& items, auto&& moment_of) {
      size_t count = 0;
      items.each([&](const auto& item) { count += moment_of(item) < until; });
      items.keep(count);
    };
    keep(thread.ids, [](const CallId& id) { return id.row->start; });
    keep(thread.blocks, [](const Block& block) { return block.time; });
    keep(thread.rows, [](const Row& row) { return row.start; });
    recording.dropped += static_cast<int64_t>(rows - thread.rows.count());
  }
  recording.is_out_of_memory.store(true);
  recording.misses_from(until);
}

// Bytes that reading takes, here and in Python, beyond those that the recording has.
inline int64_t bytes_to_read(const std::vector<TakenThread>& threads) {
  constexpr size_t kOfRow = 200, kOfBlock = 100;
  size_t needed = 0;
  for (const TakenThread& thread : threads) {
    needed += kOfRow * thread.rows.count() + kOfBlock * thread.blocks.count();
  }
  return static_cast<int64_t>(needed);
}

// Leave out about the last quarter; false where so little is left that it must be something else that needs memory.
inline bool cut_last_quarter(Recording& recording) {
  size_t most = 64;
  int64_t until = 0;
  const auto find = [&](auto& items, auto&& moment_of) {
    if (items.count() >= most) {
      most = items.count();
      items.each_between(most / 4 * 3, most / 4 * 3 + 1, [&](const auto& item) { until = moment_of(item); });
    }
  };
  for (TakenThread& thread : recording.taken) {
    find(thread.rows, [](const Row& row) { return row.start; });
    find(thread.blocks, [](const Block& block) { return block.time; });
  }
  if (until > 0) {
    cut(recording, until);
  }
  return until > 0;
}

// Number the values that were kept for one row each.
inline void number_values(Recording& recording) {
  for (TakenThread& thread : recording.taken) {
    KeptTexts::Cursor texts(thread.values_of_rows);
    int64_t until = std::numeric_limits<int64_t>::max();
    thread.rows.each([&](Row& row) {
      if (row.values == kOwnValues && row.start < until) {
        try {
          const std::string_view text = texts.next();
          row.values = recording.values.entry(text.data(), text.size()).number;
        } catch (const std::bad_alloc&) {
          until = row.start;
        }
      }
    });
    if (until != std::numeric_limits<int64_t>::max()) {
      cut(recording, until);
    }
  }
}

// As much memory as Python needs to make a trace, in pieces like its columns, beyond what the recording gives back.
class RoomForTrace {
 public:
  RoomForTrace(size_t rows, size_t blocks, size_t nodes) {
    constexpr size_t kOfAll = size_t{1} << 20, kOfNode = 512;
    const size_t numbers = rows - std::min(rows, blocks / 2);  // much of a block is given back
    for (auto& piece : pieces_) {
      piece.reset(new char[numbers * sizeof(int64_t) + (kOfAll + nodes * kOfNode) / kColumns]);
    }
  }

 private:
  static constexpr size_t kColumns = 12;
  std::unique_ptr<char[]> pieces_[kColumns];
};

}  // namespace mtprof
