// The callbacks that torch runs around every op and scope.
#pragma once

#include <ATen/record_function.h>
#include <cxxabi.h>

#if __has_include(<torch/csrc/distributed/c10d/ParamCommsUtils.hpp>)
#include <torch/csrc/distributed/c10d/ParamCommsUtils.hpp>
#define MTPROF_HAS_COLLECTIVES 1
#endif

#include "decoding.h"
#include "recording.h"

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

inline std::string quoted(const std::string& json) {
  return json_text(json);
}

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
  const std::string name = quoted(json_text(facts->getCollectiveName()));
  const std::string type = quoted(json_text(c10::toString(facts->getDType())));
  return "{\"Collective name\":" + name + ",\"dtype\":" + type +
         ",\"In msg nelems\":\"" + std::to_string(facts->getInMessageNelems()) +
         "\",\"Out msg nelems\":\"" + std::to_string(facts->getOutMessageNelems()) +
         "\",\"Group size\":\"" + std::to_string(facts->getWorldSize()) +
         "\",\"Process Group Name\":" + quoted(json_text(facts->getProcessGroupName())) +
         ",\"Process Group Description\":" + quoted(json_text(facts->getProcessGroupDesc())) +
         ",\"Process Group Ranks\":" + quoted(json_text(ranks + "]")) +
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

inline void read_readable_inputs(
    const at::RecordFunction& function, const NameCache::Name& name, ThreadRecords& records, Row& row) {
  Recording& recording = *records.recording;
  Bytes& text = records.inputs_text;
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
  append_values(text, records.values_text);
  row.inputs = records.inputs.entry(recording.inputs, text.data(), text.size()).number;
  if (records.optimizer_steps > 0) {
    records.addresses_text.clear();
    for (const c10::IValue& value : function.inputs()) {
      append_addresses(records.addresses_text, value);
    }
    row.addresses =
        records.addresses.entry(recording.addresses, records.addresses_text.data(), records.addresses_text.size()).number;
  }
}

// Sets what the inputs of an op tell. Of an op whose inputs cannot be read, the rest is recorded.
inline void read_inputs(
    const at::RecordFunction& function, const NameCache::Name& name, ThreadRecords& records, Row& row) {
  const Reading reading(records);
  try {
    read_readable_inputs(function, name, records, row);
  } catch (const std::exception&) {
    row.inputs = row.addresses = -1;
  }
}

// The stack of the calling thread. Gives up the lock where it has to wait for the GIL; false where it was lost then.
inline bool read_stack(ThreadRecords& records, int32_t& found) {
  Recording* recording = records.recording;
  const uint64_t generation = records.generation;
  bool is_unknown = false;
  found = records.stack.node(recording->stacks, is_unknown);
  if (!is_unknown) {
    return true;
  }
  records.open++;  // keeps the object alive
  records.lock.unlock();
  bool is_learnt = false;
  {
    // The recording lives while its generation does, or while `stop` waits for this mutex.
    std::unique_lock<std::mutex> held(state().mutex);
    is_learnt = state().generation.load(std::memory_order_relaxed) == generation;
    if (is_learnt) {
      recording->learners++;
    }
  }
  if (is_learnt) {
    recording->stacks.learn(records.stack.frames());
    recording->learners--;
  }
  records.lock.lock();
  records.open--;
  if (records.generation != generation || records.recording == nullptr) {
    return false;
  }
  is_unknown = false;
  found = records.stack.node(recording->stacks, is_unknown);
  return true;
}

inline std::unique_ptr<at::ObserverContext> enter_op(const at::RecordFunction& function) {
  ThreadRecords* records = locked_records();
  if (records == nullptr) {
    return nullptr;
  }
  std::unique_lock<SpinLock> held(records->lock, std::adopt_lock);
  Recording* recording = records->recording;
  const NameCache::Name& name = records->names.name(recording->names, function.name());
  if (name.is_helper || !may_add(*records)) {
    return nullptr;
  }
  int32_t stack = -1;
  if (recording->options.with_stacks) {
    records->stack.read(recording->options.known);
    if (!read_stack(*records, stack)) {
      return nullptr;
    }
  }
  Row* row = records->rows.add();
  *row = Row{0, 0, function.seqNr(), records->running, name.number, -1, stack,
             static_cast<int32_t>(function.forwardThreadId()), -1, -1,
             static_cast<uint8_t>(function.scope()), 0, 0, 0};
  if (recording->options.with_inputs) {
    read_inputs(function, name, *records, *row);
  }
  if (recording->options.with_ids) {
    *records->ids.add() = CallId{row, static_cast<uint64_t>(function.handle())};
  }
  if (function.isNcclMeta()) {
    const std::string facts = collective_facts();
    row->extra = facts.empty() ? -1 : recording->extras.entry(facts.data(), facts.size()).number;
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
  std::unique_ptr<OpContext> context(::new (records->contexts.take(sizeof(OpContext))) OpContext(records, row));
  records->running = row;
  ++records->open;
  row->start = records->clock.now();
  return context;
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
