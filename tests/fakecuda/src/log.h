// What happened: calls of the API and activities of the device, for CUPTI and for the device's own log.
#pragma once
#include <atomic>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace fake {

using Ns = uint64_t;
Ns now();  // since 1970

enum class Kind : uint8_t { runtime, driver, kernel, memcpy, memset, host, sync, event, external, overhead };

struct Shape {
  unsigned grid[3], block[3], dynamic_shared;
};

// The numbers that CUPTI has for these.
enum Overhead { loading_code = 5 << 16, queue_full = 6 << 16 };
enum Wait { event_wait = 1, stream_wait_event = 2, stream_wait = 3, device_wait = 4 };

struct Activity {
  Kind kind;
  Ns start, end;
  uint32_t correlation = 0, device = 0, stream = 0, thread = 0;
  const char* name = "";
  int type = 0;           // of a call its number in CUPTI; kind of copy, wait, overhead or external correlation
  uint64_t id = 0;        // of an event or an external correlation
  uint64_t bytes = 0;     // of a copy or a memset
  uint32_t result = 0;    // of a call
  int from = 0, to = 0;   // kinds of memory, as CUPTI numbers them
  bool blocking = false;  // a copy
  Shape shape{};
  int registers = 0, static_shared = 0;
  uint64_t node = 0;
  uint32_t graph = 0;
};

// Set by CUPTI while it records.
struct Listener {
  std::atomic<uint32_t> wanted{0};  // a bit for each Kind
  void (*add)(const Activity&) = nullptr;
  std::atomic<uint32_t> callbacks{0};  // how many are enabled
  void (*call)(Kind, int number, const char* name, bool enter, uint32_t correlation, uint32_t* result) = nullptr;
};
extern Listener listener;

bool wanted(Kind kind);
void add(Activity activity);
void flush_log();
void add_overhead(Overhead type, Ns start);
void add_wait(Wait type, Ns start, uint32_t stream, uint64_t event);

uint32_t correlation();  // of the call that this thread is in
uint32_t thread_id();
std::vector<std::pair<int, uint64_t>>& external_ids();  // of this thread: kind and id, the innermost last
int number_of(Kind domain, const char* function);       // in CUPTI; -1 if it has none
const char* name_of(Kind domain, int number);           // null if there is none
const char* intern(const std::string& text);
[[noreturn]] void unknown(const char* function);  // ends the process

// A call of an API function. CUPTI does not report calls within calls.
class Call {
 public:
  Call(Kind domain, int number, const char* name);
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  uint32_t result = 0;

 private:
  Kind domain_;
  int number_;
  const char* name_;
  Ns start_ = 0;
  bool outer_;
};

}  // namespace fake

#define EXPORT extern "C" __attribute__((visibility("default")))
#define CALL(domain)                                                         \
  static const int number__ = fake::number_of(fake::Kind::domain, __func__); \
  fake::Call call__(fake::Kind::domain, number__, __func__)
