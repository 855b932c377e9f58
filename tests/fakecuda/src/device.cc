#include "device.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "state.h"

namespace fake {

void spin(Ns span) {
  if (!span) return;
  for (const Ns until = now() + span; now() < until;) {
  }
}
void sleep_until(Ns when) {
  constexpr Ns awake = 100'000;
  for (Ns t = now(); t < when; t = now())
    if (when - t > awake) std::this_thread::sleep_for(std::chrono::nanoseconds(when - t - awake));
}

static double setting(const char* name, double otherwise) {
  const char* text = getenv((std::string("FAKECUDA_") + name).c_str());
  return text && *text ? atof(text) : otherwise;
}
const Settings& settings() {
  static const Settings known = [] {
    auto us = [](const char* name, double otherwise) { return Ns(1000 * setting(name, otherwise)); };
    Settings s;
    s.launch_cost = us("LAUNCH_COST_US", 2);
    s.launch_latency = us("LATENCY_US", 3);
    s.gap = us("GAP_US", 0.8);
    s.kernel = us("KERNEL_US", 1.6);
    s.load_cost = us("LOAD_US", 40);
    s.scale = setting("SCALE", 1);
    s.tflops = setting("TFLOPS", 40);
    s.device_rate = setting("DEVICE_GBPS", 2000);
    s.pinned_rate = setting("PINNED_GBPS", 25);
    s.pageable_rate = setting("PAGEABLE_GBPS", 6);
    s.clock_ghz = 1.98;
    s.copied_bytes = size_t(setting("COPIED_MB", 8) * (1 << 20));
    s.memory_bytes = size_t(setting("MEMORY_GB", 80) * (1ull << 30));
    s.devices = int(setting("DEVICES", 1));
    s.queue_depth = int(setting("QUEUE_DEPTH", 1024));
    return s;
  }();
  return known;
}

std::recursive_mutex& lock() {
  static auto* const mutex = new std::recursive_mutex;
  return *mutex;
}
State& state() {
  static auto* const known = new State;
  return *known;
}
int& current_device() {
  static thread_local int device = 0;
  return device;
}

// ---- memory
void* allocate(size_t bytes, Memory memory) {
  constexpr size_t page = 4096, large = 2 << 20;
  const size_t size = std::max<size_t>(1, (bytes + page - 1) / page) * page, align = size >= large ? large : page;
  LOCKED;
  if (memory == Memory::device && used_bytes(current_device()) + size > settings().memory_bytes) return nullptr;
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* mapped = mmap(nullptr, size + align, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  const uintptr_t low = uintptr_t(mapped), start = (low + align - 1) / align * align;
  if (start > low) munmap(mapped, start - low);
  if (low + align > start) munmap(reinterpret_cast<void*>(start + size), low + align - start);
  state().blocks[start] = Block{start, size, memory, current_device(), true};
  return reinterpret_cast<void*>(start);
}
bool release(void* start) {
  LOCKED;
  auto& blocks = state().blocks;
  auto it = blocks.find(uintptr_t(start));
  if (it == blocks.end()) return !start;
  const Block block = it->second;
  blocks.erase(it);
  state().contents.forget(block.start, block.bytes);
  if (block.ours) munmap(start, block.bytes);
  return true;
}
void register_host(void* start, size_t bytes) {
  LOCKED;
  state().blocks[uintptr_t(start)] = Block{uintptr_t(start), bytes, Memory::pinned, current_device(), false};
}
Block block_of(const void* p) {
  LOCKED;
  auto& blocks = state().blocks;
  auto it = blocks.upper_bound(uintptr_t(p));
  if (it == blocks.begin()) return {};
  const Block& block = (--it)->second;
  return uintptr_t(p) < block.start + block.bytes ? block : Block{};
}
size_t used_bytes(int device) {
  LOCKED;
  size_t used = 0;
  for (auto& [start, block] : state().blocks)
    if (block.memory == Memory::device && block.device == device) used += block.bytes;
  return used;
}

// ---- contents
void Contents::forget(uintptr_t start, size_t bytes) {
  auto it = written_.lower_bound(start);
  if (it != written_.begin() && std::prev(it)->first + std::prev(it)->second.bytes > start) --it;
  while (it != written_.end() && it->first < start + bytes) it = written_.erase(it);
}
void Contents::written(const void* to, size_t bytes) {
  forget(uintptr_t(to), bytes);
  written_[uintptr_t(to)] = {bytes, runs_};
}
void Contents::ran(const char* kernel) {
  ++runs_;
  all_true_ = strstr(kernel, "and_kernel") != nullptr;
}
bool Contents::known(const void* from, size_t bytes) const {
  constexpr size_t scalar = 16;
  auto it = written_.upper_bound(uintptr_t(from));
  if (it == written_.begin()) return false;
  --it;
  if (bytes > scalar) return it->first == uintptr_t(from) && it->second.bytes == bytes;
  return it->second.run == runs_ && uintptr_t(from) + bytes <= it->first + it->second.bytes;
}

// ---- the thread that copies, in order, while the host goes on
namespace {
struct Copier {
  void put(std::function<void()> job) {
    std::lock_guard guard(mutex);
    if (!started) std::thread([this] { run(); }).detach();
    started = true;
    jobs.push_back(std::move(job));
    changed.notify_all();
  }
  bool idle() {
    std::lock_guard guard(mutex);
    return jobs.empty();
  }
  void finish() {
    std::unique_lock guard(mutex);
    changed.wait(guard, [&] { return jobs.empty(); });
  }
  [[noreturn]] void run() {
    for (std::unique_lock guard(mutex);;) {
      changed.wait(guard, [&] { return !jobs.empty(); });
      auto job = std::move(jobs.front());
      guard.unlock();
      job();
      guard.lock();
      jobs.pop_front();
      changed.notify_all();
    }
  }
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> jobs;  // the first one is running
  bool started = false;
};
}  // namespace
static Copier& copier() {
  static auto* const known = new Copier;
  return *known;
}

static size_t size_of(const Operation& o) { return o.width * o.height; }
static void move(const Operation& o, bool within_device) {
  if (o.height == 1) {
    memmove(o.to, o.from, std::min(o.width, within_device ? size_t(65536) : settings().copied_bytes));
  } else {
    for (size_t y = 0; y < o.height; ++y) memmove(o.to + y * o.pitch_to, o.from + y * o.pitch_from, o.width);
  }
}
static void zero(char* to, size_t bytes) {
  constexpr uintptr_t page = 4096;
  const uintptr_t first = (uintptr_t(to) + page - 1) / page * page, last = (uintptr_t(to) + bytes) / page * page;
  if (bytes < 1 << 20 || madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED)) {
    memset(to, 0, bytes);
    return;
  }
  memset(to, 0, first - uintptr_t(to));
  memset(reinterpret_cast<void*>(last), 0, uintptr_t(to) + bytes - last);
}
static void set(const Operation& o) {
  if (!o.value) return zero(o.to, o.width);
  // What autotuning clears before each of a hundred runs is as large as the cache of level 2.
  const size_t bytes = std::min(o.width, settings().copied_bytes);
  for (size_t i = 0; i + o.value_bytes <= bytes; i += o.value_bytes) memcpy(o.to + i, &o.value, o.value_bytes);
}

// Makes the bytes true. Called under the lock, in the order of submission.
static void take_effect(const Operation& o, Ns start) {
  auto& contents = state().contents;
  std::function<void()> job;
  if (o.kind == Kind::kernel) {
    contents.ran(o.kernel.name);
    if (!o.to) return;
    contents.written(o.to, o.width);
    job = [o] { set(o); };
  } else if (o.kind == Kind::memset) {
    contents.written(o.to, o.width);
    job = [o] { set(o); };
  } else if (o.kind == Kind::memcpy) {
    const bool from_device = block_of(o.from).memory == Memory::device,
               to_device = block_of(o.to).memory == Memory::device;
    const bool known = !from_device || o.height > 1 || contents.known(o.from, o.width);
    if (known && to_device && o.height == 1) contents.written(o.to, o.width);
    if (!known && to_device) contents.forget(uintptr_t(o.to), o.width);
    const int otherwise = o.width == 1 && contents.all_true() ? 1 : 0;
    if (known)
      job = [o, within = from_device && to_device] { move(o, within); };
    else if (!to_device)
      job = [o, otherwise] { memset(o.to, otherwise, o.width); };
    else
      return;
  } else {
    std::thread([start, f = o.call] {
      sleep_until(start);
      f();
    }).detach();
    return;
  }
  if (size_of(o) <= 65536 && copier().idle())
    job();
  else
    copier().put(std::move(job));
}

// ---- streams
Stream& State::legacy(int device) {
  while (int(devices.size()) <= device) {
    auto stream = std::make_unique<Stream>();
    stream->id = 7;  // as in every real trace
    stream->device = int(devices.size());
    devices.push_back({});
    devices.back().push_back(std::move(stream));
  }
  return *devices[device].front();
}
Stream& stream_of(void* handle) {
  constexpr uintptr_t special = 2;  // cudaStreamLegacy is 1, cudaStreamPerThread 2
  LOCKED;
  return uintptr_t(handle) > special ? *static_cast<Stream*>(handle) : state().legacy(current_device());
}
Stream* make_stream(bool blocking, int priority) {
  LOCKED;
  static uint32_t last = 9;
  state().legacy(current_device());
  auto stream = std::make_unique<Stream>();
  stream->id = last += 4;
  stream->device = current_device();
  stream->priority = priority;
  stream->blocking = blocking;
  return state().devices[current_device()].emplace_back(std::move(stream)).get();
}
void destroy(Stream* stream) {
  LOCKED;
  auto& streams = state().devices[stream->device];
  auto it = std::find_if(streams.begin(), streams.end(), [&](auto& other) { return other.get() == stream; });
  if (it != streams.begin() && it != streams.end()) streams.erase(it);
}

// When work that is submitted now can start: after the stream's own, and that of the streams it is ordered with.
static Ns earliest(const Stream& stream, Ns latency) {
  Ns start = std::max(now() + latency, stream.tail ? stream.tail + settings().gap : 0);
  const Stream* legacy = &state().legacy(stream.device);
  for (auto& other : state().devices[stream.device])
    if (stream.blocking && other->blocking && (&stream == legacy || other.get() == legacy))
      start = std::max(start, other->tail);
  return start;
}
// The queue of a stream is finite: once it is full, launches wait.
static void wait_for_room(Stream& stream) {
  Ns until = 0;
  {
    LOCKED;
    auto& queue = stream.in_flight;
    for (const Ns t = now(); !queue.empty() && queue.front() <= t;) queue.pop_front();
    if (int(queue.size()) >= settings().queue_depth) until = queue.front();
  }
  if (!until) return;
  const Ns start = now();
  sleep_until(until);
  add_overhead(queue_full, start);
}

static int number(Memory memory) { return memory == Memory::device ? 3 : memory == Memory::pinned ? 2 : 1; }
static int copy_kind(const Block& from, const Block& to) {
  const bool a = from.memory == Memory::device, b = to.memory == Memory::device;
  return a && b ? (from.device == to.device ? 8 : 10) : a ? 2 : b ? 1 : 9;  // DtoD, PtoP, DtoH, HtoD, HtoH
}
static void report(const Operation& o, const Stream& stream, Ns start, Ns end, const Node* node, uint32_t graph) {
  if (!wanted(o.kind)) return;
  Activity a{o.kind, start, end};
  a.correlation = correlation();
  a.device = stream.device;
  a.stream = node && node->lane ? node->lane : stream.id;
  a.node = node ? node->id : 0;
  a.graph = graph;
  if (o.kind == Kind::kernel) {
    a.name = o.kernel.name;
    a.shape = o.shape;
    a.registers = o.kernel.registers;
    a.static_shared = o.kernel.static_shared;
  } else {
    const Block from = block_of(o.from), to = block_of(o.to);
    a.bytes = size_of(o);
    a.type = o.kind == Kind::memcpy ? copy_kind(from, to) : int(o.value);
    a.from = number(from.memory);
    a.to = number(to.memory);
    a.blocking = o.blocking;
    const bool pageable = from.memory == Memory::unknown || to.memory == Memory::unknown;
    if (o.kind == Kind::memcpy && pageable) a.name = "pageable";
  }
  add(a);
}

Ns submit(Stream& stream, Operation o) {
  o.duration = Ns(double(o.duration) * settings().scale);
  spin(settings().launch_cost);
  if (!stream.capture) wait_for_room(stream);
  LOCKED;
  if (stream.capture) {
    static uint64_t last = 0;
    auto node = std::make_unique<Node>();
    Graph* graph = stream.capture->graph;
    node->operation = std::move(o);
    node->id = uint64_t(graph->id) << 32 | ++last;
    node->lane = stream.id == stream.capture->origin ? 0 : stream.id;
    node->after = stream.captured;
    stream.captured = {node.get()};
    graph->nodes.push_back(std::move(node));
    return 0;
  }
  const Ns start = o.start ? o.start : earliest(stream, settings().launch_latency);
  stream.tail = start + o.duration;
  stream.in_flight.push_back(stream.tail);
  report(o, stream, start, stream.tail, nullptr, 0);
  take_effect(o, start);
  return stream.tail;
}

Ns ready(Stream& stream) {
  LOCKED;
  return earliest(stream, settings().launch_latency);
}
void finish_copies() { copier().finish(); }
void known(const void* to, size_t bytes) {
  LOCKED;
  state().contents.written(to, bytes);
}

void launch(Kernel& kernel, const Shape& shape, Stream& stream, void** arguments, Ns lasting, Ns starting) {
  if (!kernel.loaded) {
    kernel.loaded = true;
    const Ns start = now();
    spin(settings().load_cost);
    add_overhead(loading_code, start);
  }
  Operation o;
  o.kind = Kind::kernel;
  o.kernel = kernel;
  o.shape = shape;
  o.duration = lasting ? lasting : duration(kernel, shape, arguments);
  o.start = starting;
  compute(o, arguments);
  submit(stream, std::move(o));
}

void copy(void* to, size_t pitch_to, const void* from, size_t pitch_from, size_t width, size_t height, Stream& stream,
          bool blocking) {
  if (!width || !height) return;
  const Memory source = block_of(from).memory, target = block_of(to).memory;
  const bool pageable = source == Memory::unknown || target == Memory::unknown;
  const bool within = source == Memory::device && target == Memory::device;
  Operation o;
  o.kind = Kind::memcpy;
  o.to = static_cast<char*>(to);
  o.from = static_cast<const char*>(from);
  o.width = width;
  o.height = height;
  o.pitch_to = pitch_to;
  o.pitch_from = pitch_from;
  o.blocking = blocking;
  const double rate = within     ? settings().device_rate / 2
                      : pageable ? settings().pageable_rate
                                 : settings().pinned_rate;
  o.duration = 1100 + Ns(double(width * height) / rate);
  const Ns end = submit(stream, o);
  if (!end) return;
  // Pageable memory is staged: such a copy from the host returns once the last piece has been read, one to the host
  // once all of it is there.
  if (pageable || blocking) copier().finish();
  if (blocking || target == Memory::unknown)
    sleep_until(end);
  else if (source == Memory::unknown && width * height > 65536)
    sleep_until(end - 19'000);  // as on an H100, for 32 MB and for 64
}

void fill(void* to, int value, int value_bytes, size_t bytes, Stream& stream) {
  if (!bytes) return;
  Operation o;
  o.kind = Kind::memset;
  o.to = static_cast<char*>(to);
  o.width = bytes;
  o.value = value;
  o.value_bytes = value_bytes;
  o.duration = 900 + Ns(double(bytes) / settings().device_rate);
  submit(stream, std::move(o));
}
void call_host(std::function<void()> function, Stream& stream) {
  Operation o;
  o.call = std::move(function);
  submit(stream, std::move(o));
}

// ---- events and waiting
Event* make_event() {
  static std::atomic<uint32_t> last{0};
  auto* event = new Event;
  event->id = ++last;
  return event;
}
void record(Event& event, Stream& stream) {
  LOCKED;
  event.recorded = true;
  event.capture = stream.capture;
  event.captured = stream.captured;
  if (stream.capture) return;
  event.when = std::max(now(), stream.tail);
  if (!wanted(Kind::event)) return;
  Activity a{Kind::event, event.when, event.when};
  a.correlation = correlation();
  a.device = stream.device;
  a.stream = stream.id;
  a.id = event.id;
  add(a);
}
void wait(Stream& stream, Event& event) {
  LOCKED;
  if (auto capture = event.capture.lock()) {
    if (!stream.capture) stream.capture = capture;  // the stream joins it
    for (Node* node : event.captured)
      if (std::find(stream.captured.begin(), stream.captured.end(), node) == stream.captured.end())
        stream.captured.push_back(node);
  } else if (event.recorded) {
    stream.tail = std::max(stream.tail, event.when);
  }
}
bool done(Stream& stream) {
  LOCKED;
  return stream.tail <= now() && copier().idle();
}
bool done(const Event& event) {
  LOCKED;
  return !event.recorded || (event.when <= now() && copier().idle());
}
static void wait_until(Ns end) {
  copier().finish();
  sleep_until(end);
}
void synchronize(Stream& stream) {
  Ns end;
  {
    LOCKED;
    end = stream.tail;
  }
  wait_until(end);
}
void synchronize(Event& event) {
  if (event.recorded) wait_until(event.when);
}
void synchronize_device() {
  Ns end = 0;
  {
    LOCKED;
    state().legacy(current_device());
    for (auto& stream : state().devices[current_device()]) end = std::max(end, stream->tail);
  }
  wait_until(end);
}

// ---- graphs
void begin_capture(Stream& stream, Graph* into) {
  static uint64_t captures = 0;
  static uint32_t graphs = 0;
  LOCKED;
  if (!into) {
    into = new Graph;
    into->id = ++graphs;
  }
  stream.capture = std::make_shared<Capture>(Capture{++captures, into, stream.id});
  stream.captured.clear();
}
Graph* end_capture(Stream& stream) {
  LOCKED;
  const auto capture = stream.capture;
  if (!capture) return nullptr;
  for (auto& other : state().devices[stream.device])
    if (other->capture == capture) {
      other->capture = nullptr;
      other->captured.clear();
    }
  return capture->graph;
}
void launch_graph(Graph& graph, Stream& stream) {
  spin(2 * settings().launch_cost);
  wait_for_room(stream);
  LOCKED;
  const Ns begin = earliest(stream, 2 * settings().launch_latency);
  stream.tail = begin;
  for (auto& node : graph.nodes) {
    Ns start = begin;
    for (Node* before : node->after) start = std::max(start, before->end + settings().gap / 2);
    node->end = start + node->operation.duration;
    stream.tail = std::max(stream.tail, node->end);
    report(node->operation, stream, start, node->end, node.get(), graph.id);
    take_effect(node->operation, start);
  }
  stream.in_flight.push_back(stream.tail);
}
void give_up(Graph* graph) {
  LOCKED;
  if (--graph->owners == 0) delete graph;
}

}  // namespace fake
