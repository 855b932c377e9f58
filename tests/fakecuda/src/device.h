// A GPU without hardware: memory, streams, events, graphs.
//
// Nothing runs in the background but copies. When work is put on a stream, its start and end are computed at once: it
// starts when the stream's earlier work has ended and the launch has arrived, and lasts as long as a model says. A wait
// for the device sleeps until that end. So the host runs ahead, blocks and leaves the device idle as with a real GPU.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "log.h"

namespace fake {

void sleep_until(Ns when);  // the last 100 µs awake, because sleepers wake late
void spin(Ns span);

// FAKECUDA_*, read once. Times are in ns, rates in bytes per ns, which is GB/s.
struct Settings {
  Ns launch_cost, launch_latency, gap, kernel, load_cost;
  double scale, tflops, device_rate, pinned_rate, pageable_rate, clock_ghz;
  size_t copied_bytes, memory_bytes;
  int devices, queue_depth;
};
const Settings& settings();

// ---- memory
enum class Memory { unknown, device, pinned };
struct Block {
  uintptr_t start = 0;
  size_t bytes = 0;
  Memory memory = Memory::unknown;
  int device = 0;
  bool ours = false;  // not registered by its owner
};
void* allocate(size_t bytes, Memory memory);  // null if the device is full
bool release(void* start);
void register_host(void* start, size_t bytes);
Block block_of(const void* p);
size_t used_bytes(int device);

// ---- devices
constexpr int multiprocessors = 132;
constexpr const char* device_name = "Fake H100";
int& current_device();
int attribute(int which);  // cudaDeviceAttr and CUdevice_attribute have the same numbers

// ---- what runs on a device
struct Kernel {
  const char* name = "";  // mangled, never freed
  int registers = 32, static_shared = 0, max_threads = 1024, max_dynamic_shared = 49152;
  bool loaded = false;  // by its first launch
  void* module = nullptr;
};
Kernel* library_kernel(const char* name);
int blocks_per_multiprocessor(const Kernel& kernel, int threads, size_t dynamic_shared);
Ns duration(const Kernel& kernel, const Shape& shape, void** arguments);

struct Operation {
  Kind kind = Kind::host;  // kernel, memcpy, memset or host
  Ns duration = 0, start = 0;  // its start, if it is known
  Kernel kernel;
  Shape shape{};
  char* to = nullptr;
  const char* from = nullptr;
  size_t width = 0, height = 1, pitch_to = 0, pitch_from = 0;  // in bytes
  uint64_t value = 0;  // that a memset writes, or one of the few kernels that write anything
  int value_bytes = 1;
  bool blocking = false;
  std::function<void()> call;  // of the host
};
void compute(Operation& launch, void** arguments);  // what it writes, if that is known

struct Graph;
struct Node {
  Operation operation;
  uint64_t id = 0;
  uint32_t lane = 0;  // the stream that it was captured from, if that is not where the capture began
  std::vector<Node*> after;
  Ns end = 0;  // of its latest run
};
struct Graph {
  uint32_t id = 0;
  int owners = 1;  // the graph itself, and what was instantiated from it
  std::vector<std::unique_ptr<Node>> nodes;
};
struct Capture {
  uint64_t id = 0;
  Graph* graph = nullptr;
  uint32_t origin = 0;
};
struct Stream {
  uint32_t id = 0;
  int device = 0, priority = 0;
  bool blocking = true;  // ordered with the legacy default stream
  Ns tail = 0;           // the end of its last operation
  std::deque<Ns> in_flight;
  std::shared_ptr<Capture> capture;
  std::vector<Node*> captured;  // what the next captured operation comes after
};
struct Event {
  uint32_t id = 0;
  bool recorded = false;
  Ns when = 0;
  std::weak_ptr<Capture> capture;
  std::vector<Node*> captured;
};

Stream& stream_of(void* handle);
Stream* make_stream(bool blocking, int priority);
void destroy(Stream* stream);
Event* make_event();

void launch(Kernel& kernel, const Shape& shape, Stream& stream, void** arguments = nullptr, Ns lasting = 0,
            Ns starting = 0);
Ns ready(Stream& stream);                   // when work that is submitted now would start
void finish_copies();                       // of bytes that were submitted earlier
void known(const void* to, size_t bytes);  // what was written there by other means is what the host reads
void copy(void* to, size_t pitch_to, const void* from, size_t pitch_from, size_t width, size_t height, Stream& stream,
          bool blocking);
void fill(void* to, int value, int value_bytes, size_t bytes, Stream& stream);
void call_host(std::function<void()> function, Stream& stream);
Ns submit(Stream& stream, Operation operation);  // its end; 0 while the stream is captured

void record(Event& event, Stream& stream);
void wait(Stream& stream, Event& event);
bool done(Stream& stream);
bool done(const Event& event);
void synchronize(Stream& stream);
void synchronize(Event& event);
void synchronize_device();

void begin_capture(Stream& stream, Graph* into = nullptr);
Graph* end_capture(Stream& stream);  // null if there is none
void launch_graph(Graph& graph, Stream& stream);
void give_up(Graph* graph);  // by one of its owners

}  // namespace fake
