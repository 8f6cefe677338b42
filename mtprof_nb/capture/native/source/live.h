// Costs of a recording so far, by op and by stack, read while it goes on.
#pragma once

#include <algorithm>
#include <unordered_map>

#include "decoding.h"
#include "recording.h"

namespace mtprof {

// Self times: a row adds its time to its own name and stack, and takes it from those of the row around it.
class LiveReader {
 public:
  // Read the rows that were added or have ended since the last call. The mutex of `State` must be held. After a failure
  // some rows may be counted in part: another reader has to begin anew.
  void read(Recording& recording) {
    for (ThreadRecords* records : recording.threads) {
      Progress& progress = threads_[records];
      std::vector<Row*> running;
      {
        std::lock_guard<SpinLock> held(records->lock);
        for (Row* row : progress.running) {
          note(row, running);
        }
      }
      for (bool is_more = true; is_more;) {
        // For a moment at a time: the thread may be about to begin an op.
        std::lock_guard<SpinLock> held(records->lock);
        is_more = read_some(*records, progress, running);
      }
      progress.running.swap(running);
    }
  }

  // The `count` largest entries of `totals`: their numbers and times.
  static std::vector<std::pair<size_t, int64_t>> largest(const std::vector<int64_t>& totals, size_t count) {
    std::vector<std::pair<size_t, int64_t>> found;
    for (size_t number = 0; number < totals.size(); ++number) {
      if (totals[number] > 0) {
        found.emplace_back(number, totals[number]);
      }
    }
    const size_t kept = std::min(count, found.size());
    std::partial_sort(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(kept), found.end(),
                      [](const auto& one, const auto& other) { return one.second > other.second; });
    found.resize(kept);
    return found;
  }

  std::vector<int64_t> name_ns, name_calls, stack_ns;

 private:
  struct Progress {
    size_t seen = 0;
    std::vector<Row*> running;
  };
  static constexpr size_t kAtOnce = 2048;

  bool read_some(ThreadRecords& records, Progress& progress, std::vector<Row*>& running) {
    const size_t last = std::min(records.rows.count(), progress.seen + kAtOnce);
    records.rows.each_between(progress.seen, last, [&](Row& row) { note(&row, running); });
    progress.seen = last;
    return last < records.rows.count();
  }

  void note(Row* row, std::vector<Row*>& running) {
    if (row->end == 0) {
      running.push_back(row);
      return;
    }
    const int64_t duration = row->end - row->start;
    add(name_calls, row->name, 1);
    add(name_ns, row->name, duration);
    add(stack_ns, row->stack, duration);
    if (row->parent != nullptr) {
      add(name_ns, row->parent->name, -duration);
      add(stack_ns, row->parent->stack, -duration);
    }
  }

  static void add(std::vector<int64_t>& totals, int32_t number, int64_t amount) {
    if (number < 0) {
      return;
    }
    if (totals.size() <= static_cast<size_t>(number)) {
      totals.resize(static_cast<size_t>(number) * 2 + 64);
    }
    totals[static_cast<size_t>(number)] += amount;
  }

  std::unordered_map<ThreadRecords*, Progress> threads_;
};

struct LiveOp {
  std::string name;
  int64_t calls;
  int64_t ns;
};

struct LiveFrame {
  PythonText file;
  int line;
};

struct LiveStack {
  std::vector<LiveFrame> frames;  // innermost first
  int64_t ns;
};

// The frames of a node. The recording must not end meanwhile.
inline std::vector<LiveFrame> live_frames(StackTree& tree, size_t node) {
  std::lock_guard<std::mutex> held(tree.mutex());
  std::vector<LiveFrame> found;
  for (auto at = static_cast<int32_t>(node); at >= 0; at = tree.nodes()[static_cast<size_t>(at)].parent) {
    const StackNode& one = tree.nodes()[static_cast<size_t>(at)];
    const CodeFacts& code = tree.codes()[one.code];
    found.push_back({code.file, code.line(one.instruction)});
  }
  return found;
}

// ([(name, calls, self ns), …], [([(file, line), …], self ns), …], until when it is complete), the slowest first.
inline Owned live_object(const std::vector<LiveOp>& ops, const std::vector<LiveStack>& stacks, int64_t until) {
  Owned names(PyList_New(0)), lines(PyList_New(0));
  for (const LiveOp& op : ops) {
    Owned row(PyTuple_New(3));
    PyTuple_SET_ITEM(row.get(), 0, text_object(op.name).take());
    PyTuple_SET_ITEM(row.get(), 1, Owned(PyLong_FromLongLong(op.calls)).take());
    PyTuple_SET_ITEM(row.get(), 2, Owned(PyLong_FromLongLong(op.ns)).take());
    append_to(names, std::move(row));
  }
  for (const LiveStack& stack : stacks) {
    Owned frames(PyList_New(0));
    for (const LiveFrame& frame : stack.frames) {
      const Owned file = python_text(frame.file);
      append_to(frames, Owned(Py_BuildValue("(Oi)", file.get(), frame.line)));
    }
    append_to(lines, Owned(Py_BuildValue("(OL)", frames.get(), static_cast<long long>(stack.ns))));
  }
  return Owned(Py_BuildValue("(OOL)", names.get(), lines.get(), static_cast<long long>(until)));
}

}  // namespace mtprof
