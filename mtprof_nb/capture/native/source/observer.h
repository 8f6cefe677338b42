// The callbacks that torch runs around every op and scope.
#pragma once

#include <ATen/record_function.h>
#include <cxxabi.h>

#if __has_include(<torch/csrc/distributed/c10d/ParamCommsUtils.hpp>)
#include <torch/csrc/distributed/c10d/ParamCommsUtils.hpp>
#define MTPROF_HAS_COLLECTIVES 1
#endif

#include "decoding.h"
#include "devices/device_memory.h"

namespace mtprof {

// Leads from the start of an op to its end, which may be on another thread.
struct OpContext : at::ObserverContext {
  OpContext(ThreadRecords* owner, Row* begun) : records(owner), row(begun), generation(owner->generation) {}

  // One is made and freed for each op: a thread keeps some of their memory to use again.
  static void operator delete(void* block) {
    if (own_records != nullptr) {
      own_records->contexts.give(block);
    } else {
      ::operator delete(block);
    }
  }

  ThreadRecords* records;
  Row* row;
  uint64_t generation;
};

// The facts of a collective as a JSON object, whose values are JSON texts, as torch's profiler has them; "" for none.
inline std::string collective_facts() {
#ifdef MTPROF_HAS_COLLECTIVES
  const auto* facts = dynamic_cast<const torch::ParamCommsDebugInfo*>(
      c10::ThreadLocalDebugInfo::get(c10::DebugInfoKind::PARAM_COMMS_INFO));
  if (facts == nullptr) {
    return "";
  }
  std::string ranks = "[";
  for (const int64_t rank : facts->getGroupRanks()) {
    ranks += (ranks.size() > 1 ? ", " : "") + std::to_string(rank);
  }
  const std::string name = json_text(json_text(facts->getCollectiveName()));
  const std::string type = json_text(json_text(c10::toString(facts->getDType())));
  return "{\"Collective name\":" + name + ",\"dtype\":" + type +
         ",\"In msg nelems\":\"" + std::to_string(facts->getInMessageNelems()) +
         "\",\"Out msg nelems\":\"" + std::to_string(facts->getOutMessageNelems()) +
         "\",\"Group size\":\"" + std::to_string(facts->getWorldSize()) +
         "\",\"Process Group Name\":" + json_text(json_text(facts->getProcessGroupName())) +
         ",\"Process Group Description\":" + json_text(json_text(facts->getProcessGroupDesc())) +
         ",\"Process Group Ranks\":" + json_text(json_text(ranks + "]")) +
         ",\"Rank\":\"" + std::to_string(facts->getRank()) + "\"}";
#else
  return "";
#endif
}

inline void read_keywords(const at::RecordFunction& function, Bytes& text) {
  for (const auto& [key, value] : function.kwinputs()) {
    text.reserve(5 + key.size());
    text.put('k');
    text.put_number(static_cast<uint32_t>(key.size()));
    text.put(key.data(), key.size());
    append_keyword(text, value);
  }
}

struct Reading {
  explicit Reading(ThreadRecords& owner) : records(owner) {
    records.is_reading = true;
  }
  ~Reading() {
    records.is_reading = false;
  }
  ThreadRecords& records;
};

// The number of the values in `values_text`. Where ops of this form have other ones again and again, they are kept for
// the row alone: to look them up would take longer than all the rest.
inline int32_t number_of_values(ThreadRecords& records, ValuesOfForm& form) {
  constexpr int32_t kMany = 64;
  const Bytes& text = records.values_text;
  if (text.size() == 0) {
    return -1;
  }
  const bool is_last = form.last != nullptr && form.last->size() == text.size() &&
                       std::memcmp(form.last->data(), text.data(), text.size()) == 0;
  if (is_last) {
    return form.number;
  }
  if (form.others > kMany) {
    records.values_of_rows.make_room(text.size());
    return kOwnValues;
  }
  const size_t known = records.values.count();
  const Interner::Entry found = records.values.slot(records.recording->values, text.data(), text.size()).entry;
  form.others += records.values.count() != known;
  form.last = found.text;
  form.number = found.number;
  return found.number;
}

inline void read_readable_inputs(
    const at::RecordFunction& function, const NameCache::Name& name, ThreadRecords& records, Row& row) {
  Recording& recording = *records.recording;
  Bytes& text = records.forms_text;
  text.clear();
  records.values_text.clear();
  InputDevice device;
  for (const c10::IValue& value : function.inputs()) {
    append_form(text, value, device);
    append_value(records.values_text, value);
  }
  if (name.may_have_keywords) {  // ops have none, and asking for them takes time
    read_keywords(function, records.values_text);
  }
  row.device_type = device.type;
  row.device_index = device.index;
  auto& form = records.forms.slot(recording.forms, text.data(), text.size());
  row.form = form.entry.number;
  row.values = number_of_values(records, form);
  if (records.optimizer_steps > 0) {
    Bytes& addresses = records.addresses_text;
    addresses.clear();
    for (const c10::IValue& value : function.inputs()) {
      append_addresses(addresses, value);
    }
    row.addresses = records.addresses.number(recording.addresses, addresses.data(), addresses.size());
  }
}

// Sets what the inputs of an op tell. Of an op whose inputs cannot be read, the rest is recorded.
inline void read_inputs(
    const at::RecordFunction& function, const NameCache::Name& name, ThreadRecords& records, Row& row) {
  const Reading reading(records);
  try {
    read_readable_inputs(function, name, records, row);
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception&) {
    row.form = row.values = row.addresses = -1;
  }
}

// Add the row of an op that begins. Before the first line that changes the records, all memory is there.
inline std::unique_ptr<at::ObserverContext> add_row(const at::RecordFunction& function, ThreadRecords* records) {
  Recording* recording = records->recording;
  const NameCache::Name& name = records->names.name(recording->names, function.name());
  if (name.is_helper) {
    return nullptr;
  }
  const int32_t stack =
      recording->options.with_stacks ? records->stack.read(recording->stacks, recording->options.known) : -1;
  Row* row = records->rows.next();
  *row = Row{0, 0, function.seqNr(), records->running, name.number, -1, -1, stack,
             static_cast<int32_t>(function.forwardThreadId()), -1, -1,
             static_cast<uint8_t>(function.scope()), 0, 0, 0};
  if (recording->options.with_inputs) {
    read_inputs(function, name, *records, *row);
  }
  if (function.isNcclMeta()) {
    const std::string facts = collective_facts();
    row->extra = facts.empty() ? -1 : recording->extras.entry(facts.data(), facts.size()).number;
  }
  CallId* id = recording->options.with_ids ? records->ids.next() : nullptr;
  std::unique_ptr<OpContext> context(::new (records->contexts.take(sizeof(OpContext))) OpContext(records, row));
  records->rows.add();
  tell(*records);
  if (row->values == kOwnValues) {
    records->values_of_rows.add(records->values_text.data(), records->values_text.size());
  }
  if (id != nullptr) {
    *id = CallId{row, static_cast<uint64_t>(function.handle())};
    records->ids.add();
  }
  if (name.is_optimizer_step && function.scope() == at::RecordScope::USER_SCOPE) {
    row->flags |= kIsOptimizer;
    ++records->optimizer_steps;
  }
  Row* around = records->running;
  if (function.scope() == at::RecordScope::BACKWARD_FUNCTION && around != nullptr && around->sequence_nr < 0) {
    // The engine's event around a node has the node's numbers, as in torch's profiler.
    around->sequence_nr = row->sequence_nr;
    around->forward_thread = row->forward_thread;
  }
  records->running = row;
  ++records->open;
  enter_memory_of_op(recording->options.with_device_memory, *row);
  row->start = records->clock.now();
  return context;
}

inline std::unique_ptr<at::ObserverContext> enter_op(const at::RecordFunction& function) {
  ThreadRecords* records = locked_records(function.name());
  if (records == nullptr) {
    return nullptr;
  }
  std::unique_lock<SpinLock> held(records->lock, std::adopt_lock);
  Recording& recording = *records->recording;
  if (!recording.is_full.load(std::memory_order_relaxed)) {
    try {
      return add_row(function, records);
    } catch (const std::bad_alloc&) {
      recording.end_for_want_of_memory();
    }
  }
  recording.leave_out(function.name(), records->dropped);
  return nullptr;
}

inline void leave_op(const at::RecordFunction& function, OpContext* context) {
  ThreadRecords* records = context->records;
  const int64_t moment = records == own_records ? records->clock.now() : now_ns();
  records->lock.lock();
  if (records->generation == context->generation && records->recording != nullptr) {
    Row* row = context->row;
    row->end = std::max(moment, row->start);  // two threads' clocks may differ by a few nanoseconds
    if (function.isAsync() || records != own_records) {
      row->flags |= kIsAsync;
    }
    records->optimizer_steps -= (row->flags & kIsOptimizer) != 0;
    if (records == own_records) {
      leave_memory_of_op(*row);
    }
    while (records->running != nullptr && records->running->end != 0) {
      records->running = records->running->parent;
    }
  }
  --records->open;
  const bool is_last = is_unused(*records);
  records->lock.unlock();
  if (is_last) {
    delete records;
  }
}

// No failure of ours may reach the user's op.
inline std::unique_ptr<at::ObserverContext> enter(const at::RecordFunction& function) {
  try {
    return enter_op(function);
  } catch (const abi::__forced_unwind&) {
    throw;  // Python ends this thread, because the process exits
  } catch (...) {
    return nullptr;
  }
}

inline void leave(const at::RecordFunction& function, at::ObserverContext* context) {
  if (context != nullptr) {
    leave_op(function, static_cast<OpContext*>(context));
  }
}

}  // namespace mtprof
