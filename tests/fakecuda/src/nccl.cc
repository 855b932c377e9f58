// libnccl.so.2: collectives between processes of this machine, which meet in shared memory.
//
// A collective begins on each rank when its stream is ready, and ends on all of them at once: when the last one has
// begun, and its bytes have moved. As there is no device thread, the call itself waits until the others have submitted
// the same collective, though not until it has ended. Broadcasts and gathers of a few bytes move them, because PyTorch
// compares the ranks' parameters with their help; no other collective writes anything.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <random>
#include <thread>

#include "library.h"

using namespace fake;

constexpr int most_ranks = 8, rounds = 64;
constexpr size_t id_bytes = 128, most_bytes = 16384;  // that move
constexpr double gbps = 100;
struct Id {
  char name[id_bytes];
};
struct Round {
  std::atomic<uint32_t> came, left;  // since the beginning: a round is used again and again
  std::atomic<Ns> began[most_ranks];
  char bytes[most_ranks][most_bytes];
};
struct Communicator {
  int ranks = 1, rank = 0, device = 0;
  uint64_t next = 0;
  Round* shared = nullptr;
  std::string name;
};
static thread_local int depth = 0;  // of groups
static thread_local std::vector<std::function<void()>> grouped;

static size_t size_of(int type) {
  static const size_t bytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  return bytes[type];
}
static const char* name_of_type(int type) {
  static const char* const names[] = {"i8", "u8", "i32", "u32", "i64", "u64", "f16", "f32", "f64", "bf16", "f8e4", "f8e5"};
  return names[type];
}
static void wait_for(const std::atomic<uint32_t>& count, uint64_t wanted) {
  for (int i = 0; count.load() < wanted; ++i)
    if (i > 100) std::this_thread::sleep_for(std::chrono::microseconds(20));
}

// When the last rank began; `put` and `get` exchange bytes with the others.
static Ns meet(Communicator& c, Ns began, const std::function<void(Round&)>& put,
               const std::function<void(Round&)>& get) {
  const uint64_t use = c.next / rounds;
  Round& round = c.shared[c.next++ % rounds];
  wait_for(round.left, use * c.ranks);
  round.began[c.rank] = began;
  put(round);
  ++round.came;
  wait_for(round.came, (use + 1) * c.ranks);
  Ns last = 0;
  for (int rank = 0; rank < c.ranks; ++rank) last = std::max(last, round.began[rank].load());
  get(round);
  ++round.left;
  return last;
}

// `root` is the rank whose bytes all get, or −1 if all get those of all.
static int collect(const char* kind, const void* from, void* to, size_t count, int type, Communicator* c, void* handle,
                   int root, bool moves) {
  auto run = [=, before = current_device()] {
    current_device() = c->device;
    static const int number = number_of(Kind::runtime, "cudaLaunchKernelExC");
    Call call(Kind::runtime, number, "cudaLaunchKernelExC");
    Stream& stream = stream_of(handle);
    if (stream.capture) unknown("a collective of NCCL in a CUDA graph");
    const size_t bytes = count * size_of(type);
    const bool some = moves && bytes <= most_bytes;
    if (some) finish_copies();
    const Ns began = ready(stream);
    const Ns last = meet(
        *c, began,
        [&](Round& round) {
          if (some && (root < 0 || root == c->rank)) memcpy(round.bytes[c->rank], from, bytes);
        },
        [&](Round& round) {
          for (int rank = 0; some && rank < c->ranks; ++rank) {
            if (root >= 0 && rank != root) continue;
            char* const place = static_cast<char*>(to) + (root < 0 ? rank * bytes : 0);
            memcpy(place, round.bytes[rank], bytes);
          }
        });
    const Ns end = last + 5000 + Ns(double(bytes) / gbps);
    const std::string name =
        std::string("ncclDevKernel_") + kind + "_" + name_of_type(type) + "_RING_LL(ncclDevKernelArgsStorage<4096ul>)";
    launch(*library_kernel(name.c_str()), {{8, 1, 1}, {512, 1, 1}, 0}, stream, nullptr, end - began, began);
    if (some) known(to, root < 0 ? c->ranks * bytes : bytes);
    current_device() = before;
  };
  if (depth)
    grouped.push_back(run);
  else
    run();
  return 0;
}

EXPORT int ncclAllReduce(const void* from, void* to, size_t count, int type, int, Communicator* c, void* stream) {
  return collect("AllReduce_Sum", from, to, count, type, c, stream, -1, false);
}
EXPORT int ncclReduce(const void* from, void* to, size_t count, int type, int, int, Communicator* c, void* stream) {
  return collect("Reduce_Sum", from, to, count, type, c, stream, -1, false);
}
EXPORT int ncclReduceScatter(const void* from, void* to, size_t count, int type, int, Communicator* c, void* stream) {
  return collect("ReduceScatter_Sum", from, to, count, type, c, stream, -1, false);
}
EXPORT int ncclBroadcast(const void* from, void* to, size_t count, int type, int root, Communicator* c, void* stream) {
  return collect("Broadcast", from, to, count, type, c, stream, root, true);
}
EXPORT int ncclBcast(void* to, size_t count, int type, int root, Communicator* c, void* stream) {
  return collect("Broadcast", to, to, count, type, c, stream, root, true);
}
EXPORT int ncclAllGather(const void* from, void* to, size_t count, int type, Communicator* c, void* stream) {
  return collect("AllGather", from, to, count, type, c, stream, -1, true);
}
EXPORT int ncclGroupStart() {
  ++depth;
  return 0;
}
EXPORT int ncclGroupEnd() {
  if (--depth) return 0;
  auto now = std::move(grouped);
  grouped.clear();
  for (auto& each : now) each();
  return 0;
}

// ---- communicators
EXPORT int ncclGetVersion(int* version) {
  *version = 22807;
  return 0;
}
EXPORT const char* ncclGetErrorString(int result) { return result ? "an error of the fake NCCL" : "no error"; }
EXPORT const char* ncclGetLastError(void*) { return ""; }
EXPORT int ncclGetUniqueId(Id* id) {
  std::random_device random;
  memset(id, 0, sizeof *id);
  snprintf(id->name, sizeof id->name, "/fakecuda-%08x%08x", random(), random());
  return 0;
}
EXPORT int ncclCommInitRankConfig(Communicator** out, int ranks, Id id, int rank, void*) {
  if (ranks > most_ranks) unknown("NCCL with more than 8 ranks");
  const size_t bytes = sizeof(Round) * rounds;
  const int file = shm_open(id.name, O_RDWR | O_CREAT, 0600);
  if (file < 0 || ftruncate(file, off_t(bytes))) return 2;
  void* const shared = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (shared == MAP_FAILED) return 2;
  auto* c = new Communicator{ranks, rank, current_device(), 0, static_cast<Round*>(shared), id.name};
  meet(*c, 0, [](Round&) {}, [](Round&) {});
  if (!rank) shm_unlink(id.name);  // all have it
  *out = c;
  return 0;
}
EXPORT int ncclCommInitRank(Communicator** out, int ranks, Id id, int rank) {
  return ncclCommInitRankConfig(out, ranks, id, rank, nullptr);
}
EXPORT int ncclCommInitRankScalable(Communicator** out, int ranks, int rank, int, Id* ids, void*) {
  return ncclCommInitRankConfig(out, ranks, *ids, rank, nullptr);
}
EXPORT int ncclCommCount(Communicator* c, int* count) {
  *count = c->ranks;
  return 0;
}
EXPORT int ncclCommUserRank(Communicator* c, int* rank) {
  *rank = c->rank;
  return 0;
}
EXPORT int ncclCommGetAsyncError(Communicator*, int* error) {
  *error = 0;
  return 0;
}
EXPORT int ncclCommFinalize(Communicator*) { return 0; }
EXPORT int ncclCommAbort(Communicator*) { return 0; }
EXPORT int ncclCommDestroy(Communicator* c) {
  munmap(c->shared, sizeof(Round) * rounds);
  delete c;
  return 0;
}
