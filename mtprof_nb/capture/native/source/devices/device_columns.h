// Columns of the events that Kineto recorded on devices: no text of JSON and no Python object for an event.
#pragma once

#include <libkineto.h>

#include <algorithm>
#include <string>
#include <unordered_map>

#include "../readout.h"

namespace mtprof {

using Activities = std::vector<const libkineto::ITraceActivity*>;

// Distinct texts in the order of their numbers.
class Texts {
 public:
  int32_t number(std::string text) {
    const auto next = static_cast<int32_t>(texts_.size());
    const auto [found, is_new] = numbers_.try_emplace(std::move(text), next);
    if (is_new) {
      texts_.push_back(&found->first);
    }
    return found->second;
  }
  size_t size() const {
    return texts_.size();
  }
  Owned list() const {
    Owned found(PyList_New(0));
    for (const std::string* text : texts_) {
      append_to(found, text_object(*text));
    }
    return found;
  }

 private:
  std::unordered_map<std::string, int32_t> numbers_;
  std::vector<const std::string*> texts_;
};

// Whether columns tell this fact already.
inline bool is_known_key(std::string_view key) {
  static constexpr std::string_view kKnown[] = {"device",      "context", "stream",
                                                "correlation", "queued",  "External id"};
  return std::find(std::begin(kKnown), std::end(kKnown), key) != std::end(kKnown);
}

// The end of a value of JSON that begins at `from`: the next comma outside of brackets and texts,
// or the end.
inline size_t end_of_value(std::string_view text, size_t from) {
  int depth = 0;
  bool is_quoted = false;
  for (size_t at = from; at < text.size(); ++at) {
    const char letter = text[at];
    if (is_quoted) {
      at += letter == '\\';
      is_quoted = letter != '"';
    } else if (letter == '"') {
      is_quoted = true;
    } else if (letter == '[' || letter == '{') {
      ++depth;
    } else if (letter == ']' || letter == '}') {
      --depth;
    } else if (letter == ',' && depth == 0) {
      return at;
    }
  }
  return text.size();
}

inline std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \n\t"), last = text.find_last_not_of(" \n\t");
  const bool is_blank = first == std::string_view::npos;
  return is_blank ? std::string_view() : text.substr(first, last - first + 1);
}

// Kineto's members of a JSON object as an object whose values are JSON texts, without what columns
// tell; "" for none.
inline std::string facts_of(const std::string& members) {
  const std::string_view text = members;
  std::string found;
  for (size_t at = 0; at < text.size();) {
    const size_t opened = text.find('"', at);
    const size_t closed = opened == std::string_view::npos ? opened : text.find('"', opened + 1);
    const size_t colon = closed == std::string_view::npos ? closed : text.find(':', closed);
    if (colon == std::string_view::npos) {
      break;
    }
    const std::string_view key = text.substr(opened + 1, closed - opened - 1);
    const size_t end = end_of_value(text, colon + 1);
    if (!is_known_key(key)) {
      found += found.empty() ? "{" : ", ";
      const std::string_view value = trimmed(text.substr(colon + 1, end - colon - 1));
      add_json_text(key, found);
      found += ": ";
      add_json_text(value, found);
    }
    at = end + 1;
  }
  return found.empty() ? found : found + "}";
}

// Whether its metadata are read: those of calls tell nothing more.
inline bool has_facts(libkineto::ActivityType type) {
  using libkineto::ActivityType;
  return type == ActivityType::GPU_MEMCPY || type == ActivityType::GPU_MEMSET ||
         type == ActivityType::CONCURRENT_KERNEL || type == ActivityType::COLLECTIVE_COMM;
}

// So many distinct metadata are kept at most.
constexpr size_t kMostFacts = 100000;

// An activity with its times, which are read once: they are virtual functions.
struct TimedActivity {
  int64_t start;
  int64_t duration;
  const libkineto::ITraceActivity* activity;
};

// The activities in the order of a trace: by start, the longer first.
inline std::vector<TimedActivity> in_order(const Activities& all) {
  std::vector<TimedActivity> found;
  found.reserve(all.size());
  for (const auto* one : all) {
    found.push_back({one->timestamp(), std::max<int64_t>(one->duration(), 0), one});
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& first, const auto& second) {
    return first.start != second.start ? first.start < second.start
                                       : first.duration > second.duration;
  });
  return found;
}

// Leave out all that begin with the first beyond `most`, or later. Returns when that is; the largest
// number if there are no more.
inline int64_t cut_beyond(std::vector<TimedActivity>& activities, size_t most) {
  if (activities.size() <= most) {
    return std::numeric_limits<int64_t>::max();
  }
  const int64_t until = activities[most].start;
  while (!activities.empty() && activities.back().start >= until) {
    activities.pop_back();
  }
  return until;
}

// Columns of the activities in the order of a trace; times are `offset_ns` less than Kineto's. Of
// more than `most`, those that begin first.
inline Owned device_columns(const Activities& all, int64_t offset_ns, size_t most) {
  int64_t until = 0;
  std::vector<TimedActivity> kept;
  without_gil([&] {
    kept = in_order(all);
    until = cut_beyond(kept, most);
  });
  const size_t count = kept.size();
  Column<int64_t> start(count), duration(count), resource(count), correlation(count);
  Column<int32_t> device(count), name(count), facts(count);
  Column<int8_t> type(count);
  Texts names, texts;
  without_gil([&] {
    for (size_t position = 0; position < count; ++position) {
      const libkineto::ITraceActivity& one = *kept[position].activity;
      start[position] = kept[position].start - offset_ns;
      duration[position] = kept[position].duration;
      resource[position] = one.resourceId();
      correlation[position] = one.correlationId();
      device[position] = static_cast<int32_t>(one.deviceId());
      type[position] = static_cast<int8_t>(one.type());
      name[position] = names.number(one.name());
      facts[position] = -1;
      if (has_facts(one.type()) && texts.size() < kMostFacts) {
        std::string found = facts_of(one.metadataJson());
        facts[position] = found.empty() ? -1 : texts.number(std::move(found));
      }
    }
  });
  Owned found(PyDict_New());
  start.into(found, "start");
  duration.into(found, "duration");
  resource.into(found, "resource");
  correlation.into(found, "correlation");
  device.into(found, "device");
  type.into(found, "type");
  name.into(found, "name");
  facts.into(found, "facts");
  Owned types(PyList_New(0));
  for (int number = 0; number < libkineto::activityTypeCount; ++number) {
    const auto type = static_cast<libkineto::ActivityType>(number);
    append_to(types, text_object(libkineto::toString(type)));
  }
  set_item(found, "types", std::move(types));
  set_item(found, "names", names.list());
  set_item(found, "fact_texts", texts.list());
  set_item(found, "count", Owned(PyLong_FromSize_t(all.size())));
  const bool is_whole = until == std::numeric_limits<int64_t>::max();
  set_item(found, "until", Owned(PyLong_FromLongLong(is_whole ? until : until - offset_ns)));
  return found;
}

}  // namespace mtprof
