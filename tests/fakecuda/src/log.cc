#include "log.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <mutex>
#include <unordered_set>

namespace fake {

Listener listener;

Ns now() {
  timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return Ns(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

// ---- the device's own log: a row for each activity, tabs between its columns
static FILE* own_log() {
  static FILE* const file = []() -> FILE* {
    const char* folder = getenv("FAKECUDA_LOG");
    if (!folder || !*folder) return nullptr;
    FILE* f = fopen((std::string(folder) + "/" + std::to_string(getpid()) + ".tsv").c_str(), "w");
    if (f) fprintf(f, "kind\tstart_ns\tend_ns\tcorrelation\tdevice\tstream\tthread\ttype\tname\n");
    return f;
  }();
  return file;
}
void flush_log() {
  if (own_log()) fflush(own_log());
}

bool wanted(Kind kind) { return own_log() || listener.wanted >> int(kind) & 1; }

void add(Activity activity) {
  activity.thread = thread_id();
  if (FILE* f = own_log(); f && activity.kind != Kind::external) {
    static const char* const kinds[] = {"runtime", "driver", "kernel", "memcpy",   "memset",
                                        "host",    "sync",   "event",  "external", "overhead"};
    fprintf(f, "%s\t%lu\t%lu\t%u\t%u\t%u\t%u\t%d\t%s\n", kinds[int(activity.kind)], activity.start, activity.end,
            activity.correlation, activity.device, activity.stream, activity.thread, activity.type, activity.name);
  }
  if (listener.wanted >> int(activity.kind) & 1) listener.add(activity);
}

void add_overhead(Overhead type, Ns start) {
  if (!wanted(Kind::overhead)) return;
  Activity a{Kind::overhead, start, now()};
  a.correlation = correlation();
  a.type = type;
  add(a);
}

void add_wait(Wait type, Ns start, uint32_t stream, uint64_t event) {
  if (!wanted(Kind::sync)) return;
  Activity a{Kind::sync, start, now()};
  a.correlation = correlation();
  a.stream = stream;
  a.type = type;
  a.id = event;
  add(a);
}

// ---- calls
static thread_local int depth = 0;
static thread_local uint32_t current = 0;

uint32_t correlation() { return current; }
uint32_t thread_id() {
  static thread_local const uint32_t id = uint32_t(syscall(SYS_gettid));
  return id;
}
std::vector<std::pair<int, uint64_t>>& external_ids() {
  static thread_local std::vector<std::pair<int, uint64_t>> ids;
  return ids;
}

Call::Call(Kind domain, int number, const char* name) : domain_(domain), number_(number), name_(name) {
  static std::atomic<uint32_t> last{0};
  outer_ = depth++ == 0;
  if (!outer_) return;
  current = ++last;
  if (wanted(domain_)) start_ = now();
  if (listener.wanted >> int(Kind::external) & 1) {
    uint32_t seen = 0;  // only the innermost of each kind counts
    auto& ids = external_ids();
    for (auto it = ids.rbegin(); it != ids.rend(); ++it) {
      if (seen >> it->first & 1) continue;
      seen |= 1u << it->first;
      Activity a{Kind::external, 0, 0};
      a.correlation = current;
      a.type = it->first;
      a.id = it->second;
      add(a);
    }
  }
  if (listener.callbacks) listener.call(domain_, number_, name_, true, current, &result);
}

Call::~Call() {
  depth--;
  if (!outer_) return;
  if (listener.callbacks) listener.call(domain_, number_, name_, false, current, &result);
  if (start_ && number_ >= 0 && wanted(domain_)) {
    Activity a{domain_, start_, now()};
    a.correlation = current;
    a.name = name_;
    a.type = number_;
    a.result = result;
    add(a);
  }
  current = 0;
}

// ---- names
struct Numbered {
  int number;
  const char* name;
};
extern const Numbered runtime_functions[], driver_functions[];  // generated from CUPTI's headers

static const Numbered* functions(Kind domain) { return domain == Kind::runtime ? runtime_functions : driver_functions; }
// CUPTI's names end in the version that changed the function last: cudaLaunchKernel_v7000. The newest one counts, not
// that of the streams per thread.
int number_of(Kind domain, const char* function) {
  const size_t length = strlen(function);
  int found = -1;
  for (auto* f = functions(domain); f->name; ++f) {
    if (strncmp(f->name, function, length)) continue;
    const char* rest = f->name + length;
    bool versioned =
        domain == Kind::runtime && !strncmp(rest, "_v", 2) && strspn(rest + 2, "0123456789") + 2 == strlen(rest);
    if (!*rest || versioned) found = f->number;
  }
  return found;
}
const char* name_of(Kind domain, int number) {
  for (auto* f = functions(domain); f->name; ++f)
    if (f->number == number) return f->name;
  return nullptr;
}
const char* intern(const std::string& text) {
  static auto* const mutex = new std::mutex;
  static auto* const known = new std::unordered_set<std::string>;
  std::lock_guard guard(*mutex);
  return known->insert(text).first->c_str();
}
void unknown(const char* function) {
  fprintf(stderr, "fakecuda: %s was called, which the fake CUDA does not have\n", function);
  // Who prints this may be a process whose output nobody sees.
  const char* file = getenv("FAKECUDA_UNKNOWN");
  if (FILE* f = file && *file ? fopen(file, "a") : nullptr) fprintf(f, "%s\n", function);
  fflush(nullptr);
  abort();
}

}  // namespace fake
