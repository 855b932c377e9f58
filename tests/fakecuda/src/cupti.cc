// libcupti.so.13: activities as the records of the toolkit's own structs, callbacks for calls, and the clock.
#include <cupti.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <set>

#include "device.h"

using namespace fake;

// The layout that Kineto was compiled with.
static_assert(sizeof(CUpti_ActivityAPI) == 40);
static_assert(sizeof(CUpti_ActivityKernel10) == 216);
static_assert(sizeof(CUpti_ActivityMemcpy6) == 96);
static_assert(sizeof(CUpti_ActivityMemset4) == 88);
static_assert(sizeof(CUpti_ActivitySynchronization2) == 56);
static_assert(sizeof(CUpti_ActivityCudaEvent2) == 56);
static_assert(sizeof(CUpti_ActivityExternalCorrelation) == 24);
static_assert(sizeof(CUpti_ActivityOverhead3) == 56);

static std::mutex& mutex() {
  static auto* const known = new std::mutex;
  return *known;
}
static auto& records() {
  static auto* const known = new std::vector<Activity>;
  return *known;
}

// ---- the clock: records carry the time of the callback that Kineto registers
static CUpti_TimestampCallbackFunc callback_clock;
struct Anchor {
  Ns ns = 0;
  uint64_t ticks = 0;
};
static Anchor first_anchor;
static double ticks_per_ns = 1;
static Anchor anchor() {
  Anchor best;
  for (Ns i = 0, narrowest = ~Ns(0); i < 20; ++i) {
    const Ns before = now();
    const uint64_t ticks = callback_clock();
    const Ns width = now() - before;
    if (width >= narrowest) continue;
    narrowest = width;
    best = {before + width / 2, ticks};
  }
  return best;
}
static uint64_t stamp(Ns t) {
  if (!callback_clock) return t;
  return first_anchor.ticks + int64_t(double(int64_t(t - first_anchor.ns)) * ticks_per_ns);
}
EXPORT CUptiResult cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc clock) {
  callback_clock = clock;
  if (clock) first_anchor = anchor();
  return CUPTI_SUCCESS;
}

// ---- records in Kineto's buffers
static CUpti_BuffersCallbackRequestFunc request;
static CUpti_BuffersCallbackCompleteFunc complete;
namespace {
struct Buffer {
  uint8_t* start = nullptr;
  size_t size = 0, used = 0;

  void open() {
    size_t most_records = 0;
    used = 0;
    request(&start, &size, &most_records);
  }
  void close() {
    if (start) complete(nullptr, 0, start, size, used);
    start = nullptr;
  }
  template <class Record>
  void put(const Record& record) {
    if (start && used + sizeof record > size) close();
    if (!start) open();
    if (!start) return;
    memcpy(start + used, &record, sizeof record);
    used += sizeof record;
  }
};
}  // namespace
static Buffer current;

static void add_record(const Activity& a) {
  std::lock_guard guard(mutex());
  if (request && !current.start) current.open();  // Kineto flushes only once it has been asked for a buffer
  records().push_back(a);
}

template <class Record>
static Record make(CUpti_ActivityKind kind) {
  Record record;
  memset(&record, 0, sizeof record);
  record.kind = kind;
  return record;
}
// What activities of the device have in common.
template <class Record>
static Record on_device(const Activity& a, CUpti_ActivityKind kind) {
  auto r = make<Record>(kind);
  r.start = stamp(a.start);
  r.end = stamp(a.end);
  r.deviceId = a.device;
  r.contextId = a.device + 1;
  r.streamId = a.stream;
  r.correlationId = a.correlation;
  r.graphNodeId = a.node;
  r.graphId = a.graph;
  return r;
}
static void write(Buffer& to, const Activity& a) {
  switch (a.kind) {
    case Kind::runtime:
    case Kind::driver: {
      auto r =
          make<CUpti_ActivityAPI>(a.kind == Kind::runtime ? CUPTI_ACTIVITY_KIND_RUNTIME : CUPTI_ACTIVITY_KIND_DRIVER);
      r.cbid = a.type;
      r.start = stamp(a.start);
      r.end = stamp(a.end);
      r.processId = getpid();
      r.threadId = a.thread;
      r.correlationId = a.correlation;
      r.returnValue = a.result;
      return to.put(r);
    }
    case Kind::kernel: {
      auto r = on_device<CUpti_ActivityKernel10>(a, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
      r.completed = r.end;
      r.registersPerThread = a.registers;
      r.gridX = a.shape.grid[0];
      r.gridY = a.shape.grid[1];
      r.gridZ = a.shape.grid[2];
      r.blockX = a.shape.block[0];
      r.blockY = a.shape.block[1];
      r.blockZ = a.shape.block[2];
      r.staticSharedMemory = a.static_shared;
      r.dynamicSharedMemory = a.shape.dynamic_shared;
      r.gridId = a.correlation;
      r.name = a.name;
      r.channelType = CUPTI_CHANNEL_TYPE_COMPUTE;
      return to.put(r);
    }
    case Kind::memcpy: {
      auto r = on_device<CUpti_ActivityMemcpy6>(a, CUPTI_ACTIVITY_KIND_MEMCPY);
      r.copyKind = a.type;
      r.srcKind = a.from;
      r.dstKind = a.to;
      r.flags = a.blocking ? CUPTI_ACTIVITY_FLAG_NONE : CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC;
      r.bytes = a.bytes;
      r.copyCount = 1;
      r.channelType = CUPTI_CHANNEL_TYPE_ASYNC_MEMCPY;
      return to.put(r);
    }
    case Kind::memset: {
      auto r = on_device<CUpti_ActivityMemset4>(a, CUPTI_ACTIVITY_KIND_MEMSET);
      r.value = a.type;
      r.bytes = a.bytes;
      r.flags = CUPTI_ACTIVITY_FLAG_MEMSET_ASYNC;
      r.memoryKind = a.to;
      return to.put(r);
    }
    case Kind::sync: {
      auto r = make<CUpti_ActivitySynchronization2>(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
      r.type = CUpti_ActivitySynchronizationType(a.type);
      r.start = stamp(a.start);
      r.end = stamp(a.end);
      r.contextId = a.device + 1;
      r.streamId = a.stream;
      r.correlationId = a.correlation;
      r.cudaEventId = a.id ? a.id : CUPTI_SYNCHRONIZATION_INVALID_VALUE;
      return to.put(r);
    }
    case Kind::event: {
      auto r = make<CUpti_ActivityCudaEvent2>(CUPTI_ACTIVITY_KIND_CUDA_EVENT);
      r.correlationId = a.correlation;
      r.contextId = a.device + 1;
      r.streamId = a.stream;
      r.eventId = a.id;
      r.deviceId = a.device;
      r.deviceTimestamp = stamp(a.start);
      return to.put(r);
    }
    case Kind::external: {
      auto r = make<CUpti_ActivityExternalCorrelation>(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION);
      r.externalKind = CUpti_ExternalCorrelationKind(a.type);
      r.externalId = a.id;
      r.correlationId = a.correlation;
      return to.put(r);
    }
    case Kind::overhead: {
      auto r = make<CUpti_ActivityOverhead3>(CUPTI_ACTIVITY_KIND_OVERHEAD);
      r.overheadKind = CUpti_ActivityOverheadKind(a.type);
      r.objectKind = CUPTI_ACTIVITY_OBJECT_THREAD;
      r.objectId.pt.processId = getpid();
      r.objectId.pt.threadId = a.thread;
      r.start = stamp(a.start);
      r.end = stamp(a.end);
      return to.put(r);
    }
    case Kind::host:
      return;
  }
}
static size_t size_of(CUpti_ActivityKind kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER:
      return sizeof(CUpti_ActivityAPI);
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return sizeof(CUpti_ActivityKernel10);
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return sizeof(CUpti_ActivityMemcpy6);
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return sizeof(CUpti_ActivityMemset4);
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
      return sizeof(CUpti_ActivitySynchronization2);
    case CUPTI_ACTIVITY_KIND_CUDA_EVENT:
      return sizeof(CUpti_ActivityCudaEvent2);
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
      return sizeof(CUpti_ActivityExternalCorrelation);
    default:
      return sizeof(CUpti_ActivityOverhead3);
  }
}
EXPORT CUptiResult cuptiActivityGetNextRecord(uint8_t* buffer, size_t valid, CUpti_Activity** record) {
  auto* at = reinterpret_cast<uint8_t*>(*record);
  at = at ? at + size_of((*record)->kind) : buffer;
  if (at >= buffer + valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<CUpti_Activity*>(at);
  return CUPTI_SUCCESS;
}
EXPORT CUptiResult cuptiActivityFlushAll(uint32_t flag) {
  flush_log();
  if (!request || !complete) return CUPTI_SUCCESS;
  const Ns start = now();
  std::vector<Activity> ready;
  Buffer buffer;
  {
    std::lock_guard guard(mutex());
    std::swap(buffer, current);
    // Unless forced, only what has ended is delivered.
    auto left = std::stable_partition(records().begin(), records().end(), [&](const Activity& a) {
      return flag & CUPTI_ACTIVITY_FLAG_FLUSH_FORCED || a.end <= start;
    });
    ready.assign(records().begin(), left);
    records().erase(records().begin(), left);
  }
  // Kineto warns of a kernel that comes before the runtime's call that launched it, and of a driver's call that comes
  // before its kernel.
  auto order = [](const Activity& a) {
    return a.kind == Kind::driver ? 2 : a.kind == Kind::kernel || a.kind == Kind::memcpy || a.kind == Kind::memset;
  };
  std::stable_sort(ready.begin(), ready.end(), [&](auto& a, auto& b) { return order(a) < order(b); });
  if (callback_clock) {
    const Anchor latest = anchor();
    if (latest.ns > first_anchor.ns)
      ticks_per_ns = double(latest.ticks - first_anchor.ticks) / double(latest.ns - first_anchor.ns);
  }
  for (auto& a : ready) write(buffer, a);
  if (!ready.empty() && listener.wanted >> int(Kind::overhead) & 1) {
    Activity a{Kind::overhead, start, now()};
    a.thread = thread_id();
    a.type = CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH;
    write(buffer, a);
  }
  buffer.close();
  return CUPTI_SUCCESS;
}

// ---- what is recorded
static std::set<int> enabled;
static std::set<std::pair<Kind, int>> muted;  // calls
static void add_wanted(const Activity& a) {
  if ((a.kind == Kind::runtime || a.kind == Kind::driver) && muted.count({a.kind, a.type})) return;
  add_record(a);
}
static CUptiResult enable(CUpti_ActivityKind kind, bool on) {
  if (on)
    enabled.insert(kind);
  else
    enabled.erase(kind);
  uint32_t wanted = 0;
  auto want = [&](CUpti_ActivityKind k, Kind what) { wanted |= uint32_t(enabled.count(k)) << int(what); };
  want(CUPTI_ACTIVITY_KIND_RUNTIME, Kind::runtime);
  want(CUPTI_ACTIVITY_KIND_DRIVER, Kind::driver);
  want(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, Kind::kernel);
  want(CUPTI_ACTIVITY_KIND_MEMCPY, Kind::memcpy);
  want(CUPTI_ACTIVITY_KIND_MEMSET, Kind::memset);
  want(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, Kind::sync);
  want(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, Kind::event);
  want(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, Kind::external);
  want(CUPTI_ACTIVITY_KIND_OVERHEAD, Kind::overhead);
  listener.add = add_wanted;
  listener.wanted = wanted;
  return CUPTI_SUCCESS;
}
EXPORT CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
  const Ns start = now();
  enable(kind, true);
  if (kind == CUPTI_ACTIVITY_KIND_OVERHEAD) {  // its own start is the first
    spin(20'000);
    add_overhead(Overhead(CUPTI_ACTIVITY_OVERHEAD_CUPTI_RESOURCE), start);
  }
  return CUPTI_SUCCESS;
}
EXPORT CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind) { return enable(kind, false); }
static CUptiResult mute(Kind domain, int number, bool on) {
  std::lock_guard guard(mutex());
  if (on)
    muted.erase({domain, number});
  else
    muted.insert({domain, number});
  return CUPTI_SUCCESS;
}
EXPORT CUptiResult cuptiActivityEnableRuntimeApi(uint32_t number, uint8_t on) {
  return mute(Kind::runtime, int(number), on);
}
EXPORT CUptiResult cuptiActivityEnableDriverApi(uint32_t number, uint8_t on) {
  return mute(Kind::driver, int(number), on);
}
EXPORT CUptiResult cuptiActivityEnableCudaEventDeviceTimestamps(uint8_t) { return CUPTI_SUCCESS; }
EXPORT CUptiResult cuptiActivitySetAttribute(CUpti_ActivityAttribute, size_t*, void*) { return CUPTI_SUCCESS; }
EXPORT CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc r,
                                                  CUpti_BuffersCallbackCompleteFunc c) {
  request = r;
  complete = c;
  return CUPTI_SUCCESS;
}
EXPORT CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext, uint32_t, size_t* count) {
  *count = 0;
  return CUPTI_SUCCESS;
}
EXPORT CUptiResult cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind kind, uint64_t id) {
  external_ids().push_back({kind, id});
  return CUPTI_SUCCESS;
}
EXPORT CUptiResult cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind kind, uint64_t* last) {
  auto& ids = external_ids();
  auto it = std::find_if(ids.rbegin(), ids.rend(), [&](auto& id) { return id.first == int(kind); });
  if (it == ids.rend()) return CUPTI_ERROR_QUEUE_EMPTY;
  if (last) *last = it->second;
  ids.erase(std::next(it).base());
  return CUPTI_SUCCESS;
}
EXPORT CUptiResult cuptiFinalize() {
  enabled.clear();
  return enable(CUPTI_ACTIVITY_KIND_INVALID, false);
}

// ---- callbacks
static CUpti_CallbackFunc callback;
static void* callback_user;
static std::set<std::pair<int, uint32_t>> called_back;  // domain, function
static std::set<int> domains;
static CUpti_CallbackDomain domain_of(Kind kind) {
  return kind == Kind::runtime ? CUPTI_CB_DOMAIN_RUNTIME_API : CUPTI_CB_DOMAIN_DRIVER_API;
}
static void call_back(Kind kind, int number, const char* name, bool enter, uint32_t correlation, uint32_t* result) {
  const auto domain = domain_of(kind);
  if (!domains.count(domain) && !called_back.count({domain, uint32_t(number)})) return;
  static thread_local uint64_t scratch;
  CUpti_CallbackData data;
  memset(&data, 0, sizeof data);
  data.callbackSite = enter ? CUPTI_API_ENTER : CUPTI_API_EXIT;
  data.functionName = name;
  data.functionReturnValue = result;
  data.contextUid = current_device() + 1;
  data.correlationId = correlation;
  data.correlationData = &scratch;
  callback(callback_user, domain, number, &data);
}
static CUptiResult update_callbacks() {
  listener.call = call_back;
  listener.callbacks = callback ? uint32_t(called_back.size() + domains.size()) : 0;
  return CUPTI_SUCCESS;
}
EXPORT CUptiResult cuptiSubscribe(CUpti_SubscriberHandle* handle, CUpti_CallbackFunc function, void* user) {
  callback = function;
  callback_user = user;
  *handle = reinterpret_cast<CUpti_SubscriberHandle>(1);
  return update_callbacks();
}
EXPORT CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle) {
  callback = nullptr;
  return update_callbacks();
}
EXPORT CUptiResult cuptiEnableCallback(uint32_t on, CUpti_SubscriberHandle, CUpti_CallbackDomain domain,
                                       CUpti_CallbackId id) {
  if (on)
    called_back.insert({domain, id});
  else
    called_back.erase({domain, id});
  return update_callbacks();
}
EXPORT CUptiResult cuptiEnableDomain(uint32_t on, CUpti_SubscriberHandle, CUpti_CallbackDomain domain) {
  if (on)
    domains.insert(domain);
  else
    domains.erase(domain);
  return update_callbacks();
}
EXPORT CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain domain, uint32_t id, const char** name) {
  *name = name_of(domain == CUPTI_CB_DOMAIN_RUNTIME_API ? Kind::runtime : Kind::driver, int(id));
  return *name ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}
EXPORT CUptiResult cuptiGetVersion(uint32_t* version) {
  *version = CUPTI_API_VERSION;
  return CUPTI_SUCCESS;
}
EXPORT CUptiResult cuptiGetResultString(CUptiResult result, const char** text) {
  *text = result == CUPTI_SUCCESS ? "CUPTI_SUCCESS" : "an error of the fake CUPTI";
  return CUPTI_SUCCESS;
}
