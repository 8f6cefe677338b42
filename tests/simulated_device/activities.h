// Launches of the simulated device, and what its activity profiler tells Kineto of them.
#pragma once

#include <libkineto.h>
#include <output_base.h>
#include <pthread.h>
#include <time.h>

#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <unordered_map>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace libkineto {
std::function<int64_t(uint64_t)>& get_time_converter();
}

namespace simulated {

using libkineto::ActivityType;

// Ticks as Kineto lets CUPTI read them: of the processor's counter, or the nanoseconds of the wall clock.
inline uint64_t ticks() {
#if defined(__x86_64__)
  return __rdtsc();
#else
  timespec moment;
  clock_gettime(CLOCK_REALTIME, &moment);
  return static_cast<uint64_t>(moment.tv_sec) * 1000000000 + static_cast<uint64_t>(moment.tv_nsec);
#endif
}

inline int64_t monotonic_ns() {
  timespec moment;
  clock_gettime(CLOCK_MONOTONIC, &moment);
  return static_cast<int64_t>(moment.tv_sec) * 1000000000 + moment.tv_nsec;
}

struct Work {
  ActivityType activity;
  std::string name;
  int64_t ns;
  int32_t index;
  int32_t stream;
  int64_t bytes;
};

struct Plan {
  std::string call;
  std::vector<Work> works;
};

struct Settings {
  int64_t launch_ns = 1000;
  bool raw_threads = true;
  // Every so many launches, or works, have no record; 0: none is lost.
  int32_t lost_launches = 0, lost_works = 0;
  // How long after its launch the device begins.
  int64_t late_ns = 0;
};

struct Row {
  uint64_t start = 0, end = 0;
  uint32_t correlation = 0;
  int32_t pthread_id = 0, native_id = 0;
  uint64_t external = 0, user_external = 0;
  std::shared_ptr<const Plan> plan;
  std::string op;
};

// An activity as a plain struct, as CUPTI's records are: its metadata is made when it is asked for.
struct Activity final : libkineto::ITraceActivity {
  int64_t start = 0, length = 0, device_id = 0, resource = 0, correlation = 0, bytes = 0;
  int32_t thread = 0;
  ActivityType kind = ActivityType::CONCURRENT_KERNEL;
  bool is_call = false;
  const std::string* text = nullptr;
  const libkineto::ITraceActivity* op = nullptr;
  const libkineto::TraceSpan* span = nullptr;

  int64_t deviceId() const override { return device_id; }
  int64_t resourceId() const override { return resource; }
  int32_t getThreadId() const override { return thread; }
  int64_t timestamp() const override { return start; }
  int64_t duration() const override { return length; }
  int64_t correlationId() const override { return correlation; }
  int flowType() const override { return kind == ActivityType::GPU_USER_ANNOTATION ? 0 : libkineto::kLinkAsyncCpuGpu; }
  int64_t flowId() const override { return correlation; }
  bool flowStart() const override { return is_call; }
  ActivityType type() const override { return kind; }
  const std::string name() const override { return *text; }
  const libkineto::ITraceActivity* linkedActivity() const override { return op; }
  const libkineto::TraceSpan* traceSpan() const override { return span; }
  void log(libkineto::ActivityLogger& logger) const override { logger.handleActivity(*this); }
  const std::string metadataJson() const override {
    const std::string number = "\"correlation\": " + std::to_string(correlation);
    if (is_call) {
      return "\"cbid\": 211, " + number;
    }
    const std::string place =
        "\"device\": " + std::to_string(device_id) + ", \"context\": 1, \"stream\": " + std::to_string(resource);
    if (kind != ActivityType::CONCURRENT_KERNEL) {
      return place + ", " + number + ", \"bytes\": " + std::to_string(bytes);
    }
    return "\"queued\": 0, " + place + ", " + number +
           ", \"registers per thread\": 32, \"grid\": [" + std::to_string(1 + length / 1000) +
           ", 1, 1], \"block\": [256, 1, 1]";
  }
};

class Device {
 public:
  std::vector<Row> rows;
  Settings settings;
  ActivityType runtime = ActivityType::CUDA_RUNTIME;
  std::vector<ActivityType> asked;
  std::atomic<bool> is_collecting{false};

  void launch(const Plan& plan, const std::string& op) {
    if (!is_collecting.load(std::memory_order_relaxed)) {
      return;
    }
    Row row;
    row.start = ticks();
    row.pthread_id = own_pthread();
    row.native_id = libkineto::systemThreadId();
    row.external = stack().empty() ? 0 : stack().back();
    row.user_external = user_stack().empty() ? 0 : user_stack().back();
    row.plan = std::make_shared<const Plan>(plan);
    row.op = op;
    const int64_t began = monotonic_ns();
    while (monotonic_ns() - began < settings.launch_ns) {
    }
    std::lock_guard<std::mutex> held(mutex_);
    row.correlation = ++last_;
    row.end = ticks();
    rows.push_back(std::move(row));
  }

  void begin(const std::set<ActivityType>& types) {
    std::lock_guard<std::mutex> held(mutex_);
    rows.clear();
    activities_.clear();
    types_ = types;
    is_collecting = true;
  }

  // Tell Kineto of all launches: first what ran on the device, as CUPTI's buffers come in any order.
  void tell(libkineto::ActivityLogger& logger, const libkineto::TraceSpan& span,
            const libkineto::getLinkedActivityCallback& linked) {
    std::lock_guard<std::mutex> held(mutex_);
    const std::function<int64_t(uint64_t)> convert = libkineto::get_time_converter();
    std::map<std::pair<int32_t, int32_t>, int64_t> free_from;
    std::map<std::tuple<uint64_t, int32_t, int32_t>, Activity*> scopes;
    for (const Row& row : rows) {
      const auto* op = row.external != 0 && types_.count(ActivityType::EXTERNAL_CORRELATION) != 0
                           ? linked(static_cast<int32_t>(row.external)) : nullptr;
      const int64_t from = convert(row.end) + 2000 + settings.late_ns;
      for (const Work& work : row.plan->works) {
        int64_t& free = free_from[{work.index, work.stream}];
        const int64_t start = std::max(free, from);
        free = start + work.ns;
        if (is_lost(settings.lost_works, row) || types_.count(work.activity) == 0) {
          continue;
        }
        Activity& made = add(work.activity, span);
        made.start = start;
        made.length = work.ns;
        made.device_id = work.index;
        made.resource = work.stream;
        made.correlation = row.correlation;
        made.bytes = work.bytes;
        made.text = &work.name;
        made.op = op;
        extend_scope(scopes, row, made, span, linked);
      }
    }
    for (const Row& row : rows) {
      if (!is_lost(settings.lost_launches, row) && types_.count(runtime) != 0) {
        Activity& made = add(runtime, span);
        made.start = convert(row.start);
        made.length = convert(row.end) - made.start;
        made.device_id = libkineto::processId();
        made.resource = settings.raw_threads ? row.pthread_id : row.native_id;
        made.thread = static_cast<int32_t>(made.resource);
        made.correlation = row.correlation;
        made.is_call = true;
        made.text = &row.plan->call;
        made.op = row.external != 0 && types_.count(ActivityType::EXTERNAL_CORRELATION) != 0
                      ? linked(static_cast<int32_t>(row.external)) : nullptr;
      }
    }
    for (const Activity& one : activities_) {
      logger.handleActivity(one);
    }
  }

  static std::vector<uint64_t>& stack() {
    static thread_local std::vector<uint64_t> found;
    return found;
  }
  static std::vector<uint64_t>& user_stack() {
    static thread_local std::vector<uint64_t> found;
    return found;
  }

 private:
  static int32_t own_pthread() {
    const auto self = reinterpret_cast<uintptr_t>(reinterpret_cast<void*>(pthread_self()));
    return static_cast<int32_t>(static_cast<uint32_t>(self));
  }
  static bool is_lost(int32_t every, const Row& row) {
    return every > 0 && row.correlation % static_cast<uint32_t>(every) == 0;
  }
  Activity& add(ActivityType kind, const libkineto::TraceSpan& span) {
    activities_.emplace_back();
    activities_.back().kind = kind;
    activities_.back().span = &span;
    return activities_.back();
  }
  // A scope on the device lasts from the first work to the last one that was launched directly in it, on each stream.
  void extend_scope(std::map<std::tuple<uint64_t, int32_t, int32_t>, Activity*>& scopes, const Row& row,
                    const Activity& work, const libkineto::TraceSpan& span,
                    const libkineto::getLinkedActivityCallback& linked) {
    const auto* scope = row.user_external != 0 && types_.count(ActivityType::EXTERNAL_CORRELATION) != 0
                            ? linked(static_cast<int32_t>(row.user_external)) : nullptr;
    if (scope == nullptr) {
      return;
    }
    const int64_t start = work.start, end = work.start + work.length;
    const auto index = static_cast<int32_t>(work.device_id), stream = static_cast<int32_t>(work.resource);
    Activity*& made = scopes[{row.user_external, index, stream}];
    if (made == nullptr) {
      names_.push_back(scope->name());
      made = &add(ActivityType::GPU_USER_ANNOTATION, span);
      made->start = start;
      made->device_id = index;
      made->resource = stream;
      made->correlation = scope->correlationId();
      made->text = &names_.back();
      made->op = scope;
    }
    made->length = std::max(made->length, end - made->start);
  }

  std::mutex mutex_;
  uint32_t last_ = 0;
  std::set<ActivityType> types_;
  std::deque<Activity> activities_;
  std::deque<std::string> names_;
};

inline Device& device() {
  static Device* const found = new Device();
  return *found;
}

class Session final : public libkineto::IActivityProfilerSession {
 public:
  explicit Session(const std::set<ActivityType>& types) : types_(types) {}
  void start() override { device().begin(types_); }
  void stop() override { device().is_collecting = false; }
  std::vector<std::string> errors() override { return {}; }
  void processTrace(libkineto::ActivityLogger& logger) override {
    processTrace(logger, [](int32_t) { return nullptr; }, 0, INT64_MAX);
  }
  void processTrace(libkineto::ActivityLogger& logger, libkineto::getLinkedActivityCallback linked, int64_t,
                    int64_t) override {
    static auto* const span = new libkineto::TraceSpan(0, 0, "simulated device");
    device().tell(logger, *span, linked);
  }
  std::unique_ptr<libkineto::DeviceInfo> getDeviceInfo() override {
    return std::unique_ptr<libkineto::DeviceInfo>(new libkineto::DeviceInfo{0, 5000000, "python", "GPU 0"});
  }
  std::vector<libkineto::ResourceInfo> getResourceInfos() override { return {}; }
  std::unique_ptr<libkineto::CpuTraceBuffer> getTraceBuffer() override {
    auto made = std::make_unique<libkineto::CpuTraceBuffer>();
    made->gpuOpCount = -1;
    return made;
  }
  void pushCorrelationId(uint64_t id) override { Device::stack().push_back(id); }
  void popCorrelationId() override { pop(Device::stack()); }
  void pushUserCorrelationId(uint64_t id) override { Device::user_stack().push_back(id); }
  void popUserCorrelationId() override { pop(Device::user_stack()); }

 private:
  static void pop(std::vector<uint64_t>& stack) {
    if (!stack.empty()) {
      stack.pop_back();
    }
  }
  const std::set<ActivityType> types_;
};

class Profiler final : public libkineto::IActivityProfiler {
 public:
  const std::string& name() const override { return name_; }
  const std::set<ActivityType>& availableActivities() const override { return available_; }
  std::unique_ptr<libkineto::IActivityProfilerSession> configure(
      const std::set<ActivityType>& types, const libkineto::Config&) override {
    device().asked.assign(types.begin(), types.end());
    return types.count(device().runtime) != 0 ? std::make_unique<Session>(types) : nullptr;
  }
  std::unique_ptr<libkineto::IActivityProfilerSession> configure(
      int64_t, int64_t, const std::set<ActivityType>& types, const libkineto::Config& config) override {
    return configure(types, config);
  }

 private:
  const std::string name_ = "simulated device";
  const std::set<ActivityType> available_{
      ActivityType::CUDA_RUNTIME, ActivityType::CUDA_DRIVER, ActivityType::CONCURRENT_KERNEL, ActivityType::GPU_MEMCPY,
      ActivityType::GPU_MEMSET, ActivityType::CUDA_SYNC, ActivityType::XPU_RUNTIME, ActivityType::PRIVATEUSE1_RUNTIME};
};

}  // namespace simulated
