// The columns of a recording that has ended, as Python objects.
#pragma once

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "decoding.h"
#include "recording.h"

namespace mtprof {

// A column of numbers, which numpy reads from a bytearray without a copy.
template <typename Number>
class Column {
 public:
  // Python's function that makes a bytearray of a size prints an error of its own where memory does not suffice.
  explicit Column(size_t count) : bytes_(PyByteArray_FromStringAndSize(nullptr, 0)) {
    if (PyByteArray_Resize(bytes_.get(), static_cast<Py_ssize_t>(count * sizeof(Number))) < 0) {
      throw std::bad_alloc();
    }
    numbers_ = reinterpret_cast<Number*>(PyByteArray_AS_STRING(bytes_.get()));
  }

  Number& operator[](size_t position) {
    return numbers_[position];
  }

  void into(const Owned& dictionary, const char* name) {
    if (PyDict_SetItemString(dictionary.get(), name, bytes_.get()) < 0) {
      throw std::bad_alloc();
    }
  }

 private:
  Owned bytes_;
  Number* numbers_;
};

struct PlacedRow {
  Row* row;
  int32_t thread;
};

// All rows in order of their start; of one moment, the longer one first.
inline std::vector<PlacedRow> ordered_rows(std::vector<TakenThread>& threads, int64_t ended) {
  std::vector<PlacedRow> found;
  size_t count = 0;
  for (const TakenThread& thread : threads) {
    count += thread.rows.count();
  }
  found.reserve(count);
  auto comes_first = [](const PlacedRow& one, const PlacedRow& other) {
    return one.row->start != other.row->start ? one.row->start < other.row->start : one.row->end > other.row->end;
  };
  for (size_t thread = 0; thread < threads.size(); ++thread) {
    const auto middle = static_cast<std::ptrdiff_t>(found.size());
    threads[thread].rows.each([&](Row& row) {
      row.end = row.end == 0 ? std::max(ended, row.start) : row.end;
      found.push_back({&row, static_cast<int32_t>(thread)});
    });
    if (!std::is_sorted(found.begin() + middle, found.end(), comes_first)) {
      std::stable_sort(found.begin() + middle, found.end(), comes_first);
    }
    std::inplace_merge(found.begin(), found.begin() + middle, found.end(), comes_first);
  }
  return found;
}

// Keep the first `most` rows that begin before `until`, and return how many are left out. Where there are more than `most`,
// `until` becomes the moment at which the first of them begins.
inline int64_t leave_out(std::vector<PlacedRow>& rows, int64_t most, int64_t& until) {
  if (static_cast<int64_t>(rows.size()) > most) {
    until = std::min(until, rows[static_cast<size_t>(most)].row->start);
  }
  const auto first = std::partition_point(
      rows.begin(), rows.end(), [&](const PlacedRow& placed) { return placed.row->start < until; });
  const int64_t count = rows.end() - first;
  rows.erase(first, rows.end());
  return count;
}

inline int64_t dropped_by(const std::vector<TakenThread>& threads) {
  int64_t sum = 0;
  for (const TakenThread& one : threads) {
    sum += one.dropped;
  }
  return sum;
}

// While it lives, each row has its position in the place of its sequence number.
class Positions {
 public:
  Positions(const std::vector<PlacedRow>& rows, const Owned& found) : rows_(rows), numbers_(rows.size()) {
    numbers_.into(found, "sequence_nr");
    for (size_t position = 0; position < rows_.size(); ++position) {
      numbers_[position] = std::exchange(rows_[position].row->sequence_nr, static_cast<int64_t>(position));
    }
  }
  ~Positions() {
    for (size_t position = 0; position < rows_.size(); ++position) {
      rows_[position].row->sequence_nr = numbers_[position];
    }
  }
  Positions(const Positions&) = delete;
  Positions& operator=(const Positions&) = delete;

 private:
  const std::vector<PlacedRow>& rows_;
  Column<int64_t> numbers_;
};

inline void read_rows(const std::vector<PlacedRow>& rows, const Owned& found) {
  const size_t count = rows.size();
  Column<int64_t> start(count), duration(count);
  Column<int32_t> name(count), form(count), values(count), stack(count), forward_thread(count), addresses(count);
  Column<int32_t> extra(count), thread(count);
  Column<int8_t> scope(count), flags(count), device_type(count), device_index(count);
  for (size_t position = 0; position < count; ++position) {
    const Row& row = *rows[position].row;
    start[position] = row.start;
    duration[position] = row.end - row.start;
    name[position] = row.name;
    form[position] = row.form;
    values[position] = row.values;
    stack[position] = row.stack;
    forward_thread[position] = row.forward_thread;
    addresses[position] = row.addresses;
    extra[position] = row.extra;
    thread[position] = rows[position].thread;
    scope[position] = static_cast<int8_t>(row.scope);
    flags[position] = static_cast<int8_t>(row.flags);
    device_type[position] = row.device_type;
    device_index[position] = row.device_index;
  }
  start.into(found, "start");
  duration.into(found, "duration");
  name.into(found, "name");
  form.into(found, "form");
  values.into(found, "values");
  stack.into(found, "stack");
  forward_thread.into(found, "forward_thread");
  addresses.into(found, "addresses");
  extra.into(found, "extra");
  thread.into(found, "thread");
  scope.into(found, "scope");
  flags.into(found, "flags");
  device_type.into(found, "device_type");
  device_index.into(found, "device_index");
}

// Torch's numbers of the calls, by `Positions`; an empty column where they were not recorded.
inline void read_ids(std::vector<TakenThread>& threads, size_t count, int64_t until, const Owned& found) {
  Column<int64_t> handle(count);
  for (TakenThread& thread : threads) {
    thread.ids.each([&](const CallId& id) {
      if (id.row->start < until) {
        handle[static_cast<size_t>(id.row->sequence_nr)] = static_cast<int64_t>(id.number);
      }
    });
  }
  handle.into(found, "handle");
}

struct PlacedBlock {
  Block block{};
  int32_t thread = 0;
  int64_t total = 0;  // the bytes that are held then
};

// Sizes of the blocks that are held, by address: a table without a chain or an allocation per block.
class HeldBlocks {
 public:
  void put(uint64_t address, int64_t nbytes) {
    if ((count_ + 1) * 2 > slots_.size()) {
      grow();
    }
    Slot& slot = slots_[find(address)];
    count_ += slot.address == 0;
    slot = {address, nbytes};
  }

  // Remove a block and return its size; 0 where it is not held.
  int64_t take(uint64_t address) {
    size_t at = find(address);
    const int64_t nbytes = slots_[at].nbytes;
    if (slots_[at].address == 0) {
      return 0;
    }
    --count_;
    // Blocks behind it move up, so that the search for them does not end at the gap.
    for (size_t next = (at + 1) & mask();; next = (next + 1) & mask()) {
      if (slots_[next].address == 0) {
        break;
      }
      const size_t home = home_of(slots_[next].address);
      if (((next - home) & mask()) >= ((next - at) & mask())) {
        slots_[at] = slots_[next];
        at = next;
      }
    }
    slots_[at] = Slot{};
    return nbytes;
  }

 private:
  struct Slot {
    uint64_t address = 0;
    int64_t nbytes = 0;
  };

  size_t mask() const {
    return slots_.size() - 1;
  }
  size_t home_of(uint64_t address) const {
    return ((address >> 6) * 0x9E3779B97F4A7C15ull >> 20) & mask();
  }
  size_t find(uint64_t address) const {
    size_t at = home_of(address);
    while (slots_[at].address != 0 && slots_[at].address != address) {
      at = (at + 1) & mask();
    }
    return at;
  }
  void grow() {
    std::vector<Slot> before(slots_.size() * 2);
    before.swap(slots_);
    for (const Slot& slot : before) {
      if (slot.address != 0) {
        slots_[find(slot.address)] = slot;
      }
    }
  }

  std::vector<Slot> slots_ = std::vector<Slot>(1024);
  size_t count_ = 0;
};

// Allocations, and the releases of the blocks that were allocated before `until`, in order of time.
inline std::vector<PlacedBlock> own_blocks(std::vector<TakenThread>& threads, int64_t until) {
  std::vector<PlacedBlock> found;
  size_t count = 0;
  for (const TakenThread& thread : threads) {
    count += thread.blocks.count();
  }
  found.reserve(count);
  for (size_t thread = 0; thread < threads.size(); ++thread) {
    threads[thread].blocks.each([&](Block& block) { found.push_back({block, static_cast<int32_t>(thread)}); });
  }
  auto earlier = [](const PlacedBlock& one, const PlacedBlock& other) { return one.block.time < other.block.time; };
  if (!std::is_sorted(found.begin(), found.end(), earlier)) {
    std::stable_sort(found.begin(), found.end(), earlier);
  }
  HeldBlocks held;
  size_t kept = 0;
  int64_t total = 0;
  std::unordered_map<uint64_t, int64_t> totals;  // of other devices than the CPU
  for (PlacedBlock& placed : found) {
    Block& block = placed.block;
    if (block.time >= until) {
      break;
    }
    const auto type = static_cast<uint8_t>(block.device_type);
    const uint64_t device = type * 256u + static_cast<uint8_t>(block.device_index);
    const uint64_t address = block.address ^ device << 48;
    if (block.nbytes > 0) {
      held.put(address, block.nbytes);
    } else {
      block.nbytes = -held.take(address);
    }
    if (block.nbytes != 0) {
      placed.total = (device == 0 ? total : totals[device]) += block.nbytes;
      found[kept++] = placed;
    }
  }
  found.resize(kept);
  return found;
}

inline int32_t position_of(const Row* row, int64_t until) {
  while (row != nullptr && ((row->flags & kIsAsync) != 0 || row->start >= until)) {
    row = row->parent;
  }
  return row == nullptr ? -1 : static_cast<int32_t>(row->sequence_nr);
}

inline void read_blocks(const std::vector<PlacedBlock>& blocks, int64_t until, const Owned& found) {
  const size_t count = blocks.size();
  Column<int64_t> time(count), address(count), nbytes(count), total(count);
  Column<int32_t> event(count), thread(count), stack(count);
  Column<int8_t> device_type(count), device_index(count);
  for (size_t position = 0; position < count; ++position) {
    const Block& block = blocks[position].block;
    device_type[position] = block.device_type;
    device_index[position] = block.device_index;
    time[position] = block.time;
    address[position] = static_cast<int64_t>(block.address);
    nbytes[position] = block.nbytes;
    total[position] = blocks[position].total;
    event[position] = position_of(block.row, until);
    thread[position] = blocks[position].thread;
    stack[position] = block.stack;
  }
  time.into(found, "block_time");
  address.into(found, "block_address");
  nbytes.into(found, "block_nbytes");
  total.into(found, "block_total");
  event.into(found, "block_event");
  thread.into(found, "block_thread");
  stack.into(found, "block_stack");
  device_type.into(found, "block_device_type");
  device_index.into(found, "block_device_index");
}

inline void set_item(const Owned& dictionary, const char* name, Owned value) {
  if (PyDict_SetItemString(dictionary.get(), name, value.get()) < 0) {
    throw std::bad_alloc();
  }
}

template <typename Function>
void read_texts(Interner& table, const Owned& found, const char* name, Function&& make) {
  Owned list(PyList_New(0));
  const size_t count = table.size();
  for (size_t number = 0; number < count; ++number) {
    append_to(list, make(table.text(number)));
  }
  set_item(found, name, std::move(list));
}

inline Owned addresses_object(const std::string& text) {
  Reader reader(text);
  Owned inputs(PyList_New(0));
  while (!reader.is_done()) {
    append_to(inputs, numbers_object(reader, reader.number<uint32_t>()));
  }
  return as_tuple(inputs);
}

// The nodes of the stack tree: parent, code, line and module of each; and the codes as (file, name), and the modules.
inline void read_stacks(StackTree& stacks, const Owned& found) {
  const auto& nodes = stacks.nodes();
  Column<int32_t> parent(nodes.size()), code(nodes.size()), line(nodes.size()), module(nodes.size());
  for (size_t number = 0; number < nodes.size(); ++number) {
    const StackNode& node = nodes[number];
    parent[number] = node.parent;
    code[number] = node.code;
    line[number] = stacks.codes()[node.code].line(node.instruction);
    module[number] = node.module;
  }
  parent.into(found, "node_parent");
  code.into(found, "node_code");
  line.into(found, "node_line");
  module.into(found, "node_module");
  Owned codes(PyList_New(0)), modules(PyList_New(0));
  for (size_t number = 0; number < stacks.codes().size(); ++number) {
    const CodeFacts& one = stacks.codes()[static_cast<int32_t>(number)];
    const Owned file = python_text(one.file), name = python_text(one.name);
    append_to(codes, Owned(PyTuple_Pack(2, file.get(), name.get())));
  }
  for (const CalledModule& one : stacks.modules()) {
    const Owned type = text_object(one.type);
    append_to(modules, Owned(Py_BuildValue("(kO)", reinterpret_cast<unsigned long>(one.address), type.get())));
  }
  set_item(found, "codes", std::move(codes));
  set_item(found, "modules", std::move(modules));
}

inline Owned threads_object(const std::vector<TakenThread>& threads) {
  Owned list(PyList_New(0));
  for (const TakenThread& one : threads) {
    const auto torch_id = static_cast<unsigned long long>(one.torch_id);
    append_to(list, Owned(Py_BuildValue("(LKIL)", static_cast<long long>(one.native_id), torch_id,
                                        one.pthread_id, static_cast<long long>(one.joined))));
  }
  return list;
}

}  // namespace mtprof
