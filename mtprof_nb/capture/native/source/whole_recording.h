// Reads a recording that has ended, as far as memory suffices.
#pragma once

#include "held_memory.h"
#include "shortage.h"

namespace mtprof {

inline Owned read_whole(Recording& recording, int64_t ended) {
  Owned found(PyDict_New());
  std::vector<TakenThread>& taken = recording.taken;
  std::vector<PlacedRow> rows;
  std::vector<PlacedBlock> blocks;
  int64_t dropped = recording.dropped + dropped_by(taken), until = recording.complete_until.load();
  without_gil([&] {
    rows = ordered_rows(taken, ended);
    dropped += leave_out(rows, recording.options.max_events, until);
    blocks = own_blocks(taken, until);
  });
  const Positions positions(rows, found);
  read_rows(rows, found);
  read_ids(taken, recording.options.with_ids ? rows.size() : 0, until, found);
  read_blocks(blocks, until, found);
  read_held(rows, blocks, recording.options.with_memory, found);
  read_stacks(recording.stacks, found);
  const auto plain = [](const std::string& text) { return text_object(text); };
  read_texts(recording.names, found, "names", plain);
  read_texts(recording.forms, found, "forms",
             [](const std::string& text) { return forms_object(text); });
  read_texts(recording.values, found, "value_texts",
             [](const std::string& text) { return text_object(values_text(text)); });
  read_texts(recording.extras, found, "extras", plain);
  read_texts(recording.addresses, found, "address_lists", &addresses_object);
  set_item(found, "threads", threads_object(taken));
  set_item(found, "dropped", Owned(PyLong_FromLongLong(dropped)));
  set_item(found, "until", Owned(PyLong_FromLongLong(until)));
  const bool is_out_of_memory = recording.is_out_of_memory.load();
  set_item(found, "is_out_of_memory", Owned(PyBool_FromLong(is_out_of_memory)));
  const RoomForTrace room(rows.size(), blocks.size(), recording.stacks.nodes().size());
  return found;
}

// The recording; where there is not enough memory to read all of it, its first part.
inline Owned read_out(Recording& recording, int64_t ended, int64_t available) {
  without_gil([&] {
    number_values(recording);
    while (bytes_to_read(recording.taken) > available && cut_last_quarter(recording)) {
    }
  });
  for (;;) {
    try {
      return read_whole(recording, ended);
    } catch (const std::bad_alloc&) {
      if (!cut_last_quarter(recording)) {
        throw;
      }
      PyErr_Clear();
    }
  }
}

}  // namespace mtprof
