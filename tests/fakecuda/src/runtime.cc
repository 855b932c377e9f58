// libcudart.so.13: the CUDA runtime.
#define CUDARTAPI
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstring>
#include <mutex>
#include <unordered_map>

#include "device.h"

using namespace fake;

static_assert(CUDART_VERSION / 1000 == 13, "the wheel is built for CUDA 13");

static thread_local cudaError_t last_error = cudaSuccess;
static Event& event(cudaEvent_t e) { return *reinterpret_cast<Event*>(e); }
static Graph* graph(cudaGraph_t g) { return reinterpret_cast<Graph*>(g); }
#define RETURN(error)                                 \
  do {                                                \
    const cudaError_t error__ = error;                \
    if (error__ != cudaSuccess) last_error = error__; \
    return cudaError_t(call__.result = error__);      \
  } while (0)

// ---- what compiled CUDA code registers when it is loaded
struct Variable {
  size_t bytes;
  void* on_device[16];  // from its first use there
};
static std::mutex& mutex() {
  static auto* const known = new std::mutex;
  return *known;
}
static auto& kernels() {
  static auto* const known = new std::unordered_map<const void*, Kernel>;
  return *known;
}
static auto& variables() {
  static auto* const known = new std::unordered_map<const void*, Variable>;
  return *known;
}
EXPORT void** __cudaRegisterFatBinary(void* binary) { return new void*(binary); }
EXPORT void __cudaRegisterFatBinaryEnd(void**) {}
EXPORT void __cudaUnregisterFatBinary(void**) {}
EXPORT char __cudaInitModule(void**) { return 1; }
EXPORT void __cudaRegisterFunction(void** module, const char* function, char*, const char* name, int max_threads,
                                   uint3*, uint3*, dim3*, dim3*, int*) {
  Kernel kernel = *library_kernel(name);
  if (max_threads > 0) kernel.max_threads = max_threads;
  kernel.module = module;
  std::lock_guard guard(mutex());
  kernels()[function] = kernel;
}
EXPORT void __cudaRegisterVar(void**, char* variable, char*, const char*, int, size_t bytes, int, int) {
  std::lock_guard guard(mutex());
  variables()[variable] = Variable{bytes, {}};
}
static Kernel& kernel(const void* function) {
  std::lock_guard guard(mutex());
  auto it = kernels().find(function);
  // Else it is the cudaKernel_t of a library that was loaded later.
  return it != kernels().end() ? it->second : *static_cast<Kernel*>(const_cast<void*>(function));
}
static char* address(const void* variable) {
  std::lock_guard guard(mutex());
  auto it = variables().find(variable);
  if (it == variables().end()) return nullptr;
  void*& place = it->second.on_device[current_device()];
  if (!place) place = allocate(it->second.bytes, Memory::device);
  return static_cast<char*>(place);
}
EXPORT cudaError_t __cudaGetKernel(cudaKernel_t* out, const void* function) {
  *out = reinterpret_cast<cudaKernel_t>(&kernel(function));
  return cudaSuccess;
}

// ---- launches
struct Configuration {
  dim3 grid, block;
  size_t shared;
  cudaStream_t stream;
};
static thread_local std::vector<Configuration> configurations;
EXPORT unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream) {
  configurations.push_back({grid, block, shared, stream});
  return 0;
}
EXPORT cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, void* stream) {
  if (configurations.empty()) return cudaErrorMissingConfiguration;
  const Configuration c = configurations.back();
  configurations.pop_back();
  *grid = c.grid;
  *block = c.block;
  *shared = c.shared;
  *static_cast<cudaStream_t*>(stream) = c.stream;
  return cudaSuccess;
}
static void launch(const void* function, dim3 g, dim3 b, void** arguments, size_t shared, cudaStream_t stream) {
  fake::launch(kernel(function), {{g.x, g.y, g.z}, {b.x, b.y, b.z}, unsigned(shared)}, stream_of(stream), arguments);
}
EXPORT cudaError_t cudaLaunchKernel(const void* f, dim3 grid, dim3 block, void** arguments, size_t shared,
                                    cudaStream_t stream) {
  CALL(runtime);
  launch(f, grid, block, arguments, shared, stream);
  RETURN(cudaSuccess);
}
EXPORT cudaError_t __cudaLaunchKernel(cudaKernel_t k, dim3 grid, dim3 block, void** arguments, size_t shared,
                                      cudaStream_t stream) {
  return cudaLaunchKernel(k, grid, block, arguments, shared, stream);
}
EXPORT cudaError_t cudaLaunchCooperativeKernel(const void* f, dim3 grid, dim3 block, void** arguments, size_t shared,
                                               cudaStream_t stream) {
  CALL(runtime);
  launch(f, grid, block, arguments, shared, stream);
  RETURN(cudaSuccess);
}
EXPORT cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* c, const void* f, void** arguments) {
  CALL(runtime);
  launch(f, c->gridDim, c->blockDim, arguments, c->dynamicSmemBytes, c->stream);
  RETURN(cudaSuccess);
}
EXPORT cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t f, void* user) {
  CALL(runtime);
  call_host([=] { f(user); }, stream_of(stream));
  RETURN(cudaSuccess);
}
EXPORT cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t f, void* user, unsigned) {
  CALL(runtime);
  call_host([=] { f(stream, cudaSuccess, user); }, stream_of(stream));
  RETURN(cudaSuccess);
}
EXPORT cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* a, const void* f) {
  CALL(runtime);
  const Kernel& k = kernel(f);
  *a = {};
  a->sharedSizeBytes = k.static_shared;
  a->maxThreadsPerBlock = k.max_threads;
  a->numRegs = k.registers;
  a->ptxVersion = a->binaryVersion = 90;
  a->maxDynamicSharedSizeBytes = k.max_dynamic_shared;
  a->preferredShmemCarveout = -1;
  RETURN(cudaSuccess);
}
EXPORT cudaError_t cudaFuncSetAttribute(const void* f, cudaFuncAttribute which, int value) {
  CALL(runtime);
  if (which == cudaFuncAttributeMaxDynamicSharedMemorySize) kernel(f).max_dynamic_shared = value;
  RETURN(cudaSuccess);
}
EXPORT cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* f, int threads,
                                                                          size_t shared, unsigned) {
  CALL(runtime);
  *blocks = blocks_per_multiprocessor(kernel(f), threads, shared);
  RETURN(cudaSuccess);
}
EXPORT cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* f, int threads,
                                                                 size_t shared) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, f, threads, shared, 0);
}
EXPORT cudaError_t cudaLibraryLoadData(cudaLibrary_t* library, const void* code, cudaJitOption*, void**, unsigned,
                                       cudaLibraryOption*, void**, unsigned) {
  *library = static_cast<cudaLibrary_t>(const_cast<void*>(code));
  return cudaSuccess;
}
EXPORT cudaError_t cudaLibraryGetKernel(cudaKernel_t* k, cudaLibrary_t, const char* name) {
  *k = reinterpret_cast<cudaKernel_t>(library_kernel(name));
  return cudaSuccess;
}
EXPORT cudaError_t cudaLibraryUnload(cudaLibrary_t) { return cudaSuccess; }
EXPORT cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t, cudaFuncAttribute, int, int) { return cudaSuccess; }

// ---- versions, errors, devices
EXPORT cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
EXPORT cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDA_VERSION;
  return cudaSuccess;
}
EXPORT cudaError_t cudaGetLastError() {
  const cudaError_t error = last_error;
  last_error = cudaSuccess;
  return error;
}
EXPORT cudaError_t cudaPeekAtLastError() { return last_error; }
EXPORT const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "cudaSuccess";
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidValue:
      return "cudaErrorInvalidValue";
    case cudaErrorInvalidDevice:
      return "cudaErrorInvalidDevice";
    case cudaErrorNotReady:
      return "cudaErrorNotReady";
    default:
      return "an error of the fake CUDA runtime";
  }
}
EXPORT const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaSuccess                 ? "no error"
         : error == cudaErrorMemoryAllocation ? "out of memory"
                                              : cudaGetErrorName(error);
}
EXPORT cudaError_t cudaGetDeviceCount(int* count) {
  CALL(runtime);
  *count = settings().devices;
  RETURN(cudaSuccess);
}
EXPORT cudaError_t cudaGetDevice(int* device) {
  CALL(runtime);
  *device = current_device();
  RETURN(cudaSuccess);
}
EXPORT cudaError_t cudaSetDevice(int device) {
  CALL(runtime);
  if (device < 0 || device >= settings().devices) RETURN(cudaErrorInvalidDevice);
  current_device() = device;
  RETURN(cudaSuccess);
}
EXPORT cudaError_t cudaDeviceSynchronize() {
  CALL(runtime);
  const Ns start = now();
  synchronize_device();
  add_wait(device_wait, start, ~0u, 0);
  RETURN(cudaSuccess);
}
EXPORT cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr which, int) {
  CALL(runtime);
  *value = attribute(which);
  RETURN(cudaSuccess);
}
EXPORT cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int device) {
  CALL(runtime);
  *p = {};
  strcpy(p->name, device_name);
  for (int i = 0; i < 16; ++i) p->uuid.bytes[i] = char(0xA0 + i + device);
  p->totalGlobalMem = settings().memory_bytes;
  p->sharedMemPerBlock = attribute(cudaDevAttrMaxSharedMemoryPerBlock);
  p->regsPerBlock = attribute(cudaDevAttrMaxRegistersPerBlock);
  p->warpSize = attribute(cudaDevAttrWarpSize);
  p->memPitch = attribute(cudaDevAttrMaxPitch);
  p->maxThreadsPerBlock = attribute(cudaDevAttrMaxThreadsPerBlock);
  for (int i = 0; i < 3; ++i) {
    p->maxThreadsDim[i] = attribute(cudaDevAttrMaxBlockDimX + i);
    p->maxGridSize[i] = attribute(cudaDevAttrMaxGridDimX + i);
  }
  p->totalConstMem = attribute(cudaDevAttrTotalConstantMemory);
  p->major = attribute(cudaDevAttrComputeCapabilityMajor);
  p->textureAlignment = attribute(cudaDevAttrTextureAlignment);
  p->multiProcessorCount = multiprocessors;
  p->canMapHostMemory = p->concurrentKernels = p->ECCEnabled = p->unifiedAddressing = 1;
  p->pciBusID = 0x53 + device;
  p->asyncEngineCount = attribute(cudaDevAttrAsyncEngineCount);
  p->memoryBusWidth = attribute(cudaDevAttrGlobalMemoryBusWidth);
  p->l2CacheSize = attribute(cudaDevAttrL2CacheSize);
  p->maxThreadsPerMultiProcessor = attribute(cudaDevAttrMaxThreadsPerMultiProcessor);
  p->streamPrioritiesSupported = p->globalL1CacheSupported = p->localL1CacheSupported = 1;
  p->sharedMemPerMultiprocessor = attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor);
  p->regsPerMultiprocessor = attribute(cudaDevAttrMaxRegistersPerMultiprocessor);
  p->managedMemory = p->concurrentManagedAccess = p->computePreemptionSupported = p->cooperativeLaunch = 1;
  p->sharedMemPerBlockOptin = attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
  p->maxBlocksPerMultiProcessor = attribute(cudaDevAttrMaxBlocksPerMultiprocessor);
  p->reservedSharedMemPerBlock = attribute(cudaDevAttrReservedSharedMemoryPerBlock);
  p->hostRegisterSupported = p->clusterLaunch = 1;
  RETURN(cudaSuccess);
}
EXPORT cudaError_t cudaDeviceGetPCIBusId(char* id, int size, int device) {
  snprintf(id, size, "0000:%02X:00.0", 0x53 + device);
  return cudaSuccess;
}
EXPORT cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  if (least) *least = 0;
  if (greatest) *greatest = -5;
  return cudaSuccess;
}
EXPORT cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
  *can = 0;
  return cudaSuccess;
}
EXPORT cudaError_t cudaProfilerStart() { return cudaSuccess; }
EXPORT cudaError_t cudaProfilerStop() { return cudaSuccess; }
EXPORT cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned, unsigned long long,
                                                    cudaDriverEntryPointQueryResult* found) {
  CUdriverProcAddressQueryResult result;
  cuGetProcAddress_v2(name, function, CUDA_VERSION, 0, &result);
  if (found) *found = *function ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}

// ---- memory
EXPORT cudaError_t cudaMalloc(void** p, size_t bytes) {
  CALL(runtime);
  spin(20 * settings().launch_cost);
  *p = allocate(bytes, Memory::device);
  RETURN(*p ? cudaSuccess : cudaErrorMemoryAllocation);
}
EXPORT cudaError_t cudaFree(void* p) {
  CALL(runtime);
  if (p) synchronize_device();
  RETURN(release(p) ? cudaSuccess : cudaErrorInvalidValue);
}
EXPORT cudaError_t cudaMallocAsync(void** p, size_t bytes, cudaStream_t) {
  CALL(runtime);
  *p = allocate(bytes, Memory::device);
  RETURN(*p ? cudaSuccess : cudaErrorMemoryAllocation);
}
EXPORT cudaError_t cudaFreeAsync(void* p, cudaStream_t stream) {
  CALL(runtime);
  synchronize(stream_of(stream));
  RETURN(release(p) ? cudaSuccess : cudaErrorInvalidValue);
}
EXPORT cudaError_t cudaHostAlloc(void** p, size_t bytes, unsigned) {
  CALL(runtime);
  spin(20 * settings().launch_cost);
  *p = allocate(bytes, Memory::pinned);
  RETURN(*p ? cudaSuccess : cudaErrorMemoryAllocation);
}
EXPORT cudaError_t cudaFreeHost(void* p) {
  CALL(runtime);
  RETURN(release(p) ? cudaSuccess : cudaErrorInvalidValue);
}
EXPORT cudaError_t cudaHostRegister(void* p, size_t bytes, unsigned) {
  CALL(runtime);
  register_host(p, bytes);
  RETURN(cudaSuccess);
}
EXPORT cudaError_t cudaHostUnregister(void* p) {
  CALL(runtime);
  RETURN(release(p) ? cudaSuccess : cudaErrorInvalidValue);
}
EXPORT cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  CALL(runtime);
  cuMemGetInfo_v2(free, total);
  RETURN(cudaSuccess);
}
EXPORT cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* a, const void* p) {
  CALL(runtime);
  const Block block = block_of(p);
  void* const there = block.memory == Memory::unknown ? nullptr : const_cast<void*>(p);
  const bool on_device = block.memory == Memory::device;
  *a = {};
  a->type = on_device ? cudaMemoryTypeDevice : there ? cudaMemoryTypeHost : cudaMemoryTypeUnregistered;
  a->device = there ? block.device : -2;
  a->devicePointer = there;
  a->hostPointer = on_device ? nullptr : const_cast<void*>(p);
  RETURN(cudaSuccess);
}
EXPORT cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind, cudaStream_t stream) {
  CALL(runtime);
  copy(to, 0, from, 0, bytes, 1, stream_of(stream), false);
  RETURN(cudaSuccess);
}
EXPORT cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind) {
  CALL(runtime);
  copy(to, 0, from, 0, bytes, 1, stream_of(nullptr), true);
  RETURN(cudaSuccess);
}
EXPORT cudaError_t cudaMemcpy2DAsync(void* to, size_t pitch_to, const void* from, size_t pitch_from, size_t width,
                                     size_t height, cudaMemcpyKind, cudaStream_t stream) {
  CALL(runtime);
  copy(to, pitch_to, from, pitch_from, width, height, stream_of(stream), false);
  RETURN(cudaSuccess);
}
EXPORT cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t bytes, cudaStream_t stream) {
  CALL(runtime);
  copy(to, 0, from, 0, bytes, 1, stream_of(stream), false);
  RETURN(cudaSuccess);
}
EXPORT cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* from, size_t bytes, size_t offset,
                                      cudaMemcpyKind) {
  CALL(runtime);
  char* to = address(symbol);
  if (!to) RETURN(cudaErrorInvalidSymbol);
  copy(to + offset, 0, from, 0, bytes, 1, stream_of(nullptr), true);
  RETURN(cudaSuccess);
}
EXPORT cudaError_t cudaGetSymbolAddress(void** p, const void* symbol) {
  CALL(runtime);
  *p = address(symbol);
  RETURN(*p ? cudaSuccess : cudaErrorInvalidSymbol);
}
EXPORT cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  CALL(runtime);
  fill(to, value, 1, bytes, stream_of(stream));
  RETURN(cudaSuccess);
}
EXPORT cudaError_t cudaMemset(void* to, int value, size_t bytes) {
  CALL(runtime);
  fill(to, value, 1, bytes, stream_of(nullptr));
  RETURN(cudaSuccess);
}

// ---- streams and events
EXPORT cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  CALL(runtime);
  *stream = reinterpret_cast<cudaStream_t>(make_stream(!(flags & cudaStreamNonBlocking), priority));
  RETURN(cudaSuccess);
}
EXPORT cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return cudaStreamCreateWithPriority(stream, flags, 0);
}
EXPORT cudaError_t cudaStreamCreate(cudaStream_t* stream) { return cudaStreamCreateWithPriority(stream, 0, 0); }
EXPORT cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  CALL(runtime);
  destroy(&stream_of(stream));
  RETURN(cudaSuccess);
}
EXPORT cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  *priority = stream_of(stream).priority;
  return cudaSuccess;
}
EXPORT cudaError_t cudaStreamQuery(cudaStream_t stream) {
  CALL(runtime);
  return done(stream_of(stream)) ? cudaSuccess : cudaErrorNotReady;
}
EXPORT cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  CALL(runtime);
  const Ns start = now();
  synchronize(stream_of(stream));
  add_wait(stream_wait, start, stream_of(stream).id, 0);
  RETURN(cudaSuccess);
}
EXPORT cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t e, unsigned) {
  CALL(runtime);
  const Ns start = now();
  wait(stream_of(stream), event(e));
  add_wait(stream_wait_event, start, stream_of(stream).id, event(e).id);
  RETURN(cudaSuccess);
}
EXPORT cudaError_t cudaEventCreateWithFlags(cudaEvent_t* e, unsigned) {
  CALL(runtime);
  *e = reinterpret_cast<cudaEvent_t>(make_event());
  RETURN(cudaSuccess);
}
EXPORT cudaError_t cudaEventCreate(cudaEvent_t* e) { return cudaEventCreateWithFlags(e, 0); }
EXPORT cudaError_t cudaEventDestroy(cudaEvent_t e) {
  CALL(runtime);
  delete &event(e);
  RETURN(cudaSuccess);
}
EXPORT cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t stream) {
  CALL(runtime);
  record(event(e), stream_of(stream));
  RETURN(cudaSuccess);
}
EXPORT cudaError_t cudaEventRecordWithFlags(cudaEvent_t e, cudaStream_t stream, unsigned) {
  return cudaEventRecord(e, stream);
}
EXPORT cudaError_t cudaEventQuery(cudaEvent_t e) {
  CALL(runtime);
  return done(event(e)) ? cudaSuccess : cudaErrorNotReady;
}
EXPORT cudaError_t cudaEventSynchronize(cudaEvent_t e) {
  CALL(runtime);
  const Ns start = now();
  synchronize(event(e));
  add_wait(event_wait, start, ~0u, event(e).id);
  RETURN(cudaSuccess);
}
EXPORT cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t a, cudaEvent_t b) {
  CALL(runtime);
  if (!event(a).recorded || !event(b).recorded) RETURN(cudaErrorInvalidResourceHandle);
  if (!done(event(a)) || !done(event(b))) RETURN(cudaErrorNotReady);
  *ms = float((double(event(b).when) - double(event(a).when)) / 1e6);
  RETURN(cudaSuccess);
}

// ---- capture and graphs
EXPORT cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  CALL(runtime);
  if (stream_of(stream).capture) RETURN(cudaErrorIllegalState);
  begin_capture(stream_of(stream));
  RETURN(cudaSuccess);
}
EXPORT cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* g) {
  CALL(runtime);
  *g = reinterpret_cast<cudaGraph_t>(end_capture(stream_of(stream)));
  RETURN(*g ? cudaSuccess : cudaErrorIllegalState);
}
EXPORT cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  CALL(runtime);
  *status = stream_of(stream).capture ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  RETURN(cudaSuccess);
}
EXPORT cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                            unsigned long long* id, cudaGraph_t* g, const cudaGraphNode_t** nodes,
                                            const cudaGraphEdgeData** edges, size_t* count) {
  CALL(runtime);
  const Stream& s = stream_of(stream);
  *status = s.capture ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  if (!s.capture) RETURN(cudaSuccess);
  if (id) *id = s.capture->id;
  if (g) *g = reinterpret_cast<cudaGraph_t>(s.capture->graph);
  if (nodes) *nodes = reinterpret_cast<const cudaGraphNode_t*>(s.captured.data());
  if (edges) *edges = nullptr;
  if (count) *count = s.captured.size();
  RETURN(cudaSuccess);
}
EXPORT cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t* nodes,
                                                       const cudaGraphEdgeData*, size_t count, unsigned flags) {
  CALL(runtime);
  auto& captured = stream_of(stream).captured;
  if (flags == cudaStreamSetCaptureDependencies) captured.clear();
  for (size_t i = 0; i < count; ++i) captured.push_back(reinterpret_cast<Node*>(nodes[i]));
  RETURN(cudaSuccess);
}
EXPORT cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  static thread_local cudaStreamCaptureMode current = cudaStreamCaptureModeGlobal;
  std::swap(current, *mode);
  return cudaSuccess;
}
// An executable graph shares the nodes of the graph, which nothing changes after its capture.
EXPORT cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* executable, cudaGraph_t g, unsigned long long) {
  CALL(runtime);
  ++graph(g)->owners;
  *executable = reinterpret_cast<cudaGraphExec_t>(g);
  RETURN(cudaSuccess);
}
EXPORT cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  CALL(runtime);
  launch_graph(*reinterpret_cast<Graph*>(executable), stream_of(stream));
  RETURN(cudaSuccess);
}
EXPORT cudaError_t cudaGraphDestroy(cudaGraph_t g) {
  CALL(runtime);
  give_up(graph(g));
  RETURN(cudaSuccess);
}
EXPORT cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  CALL(runtime);
  give_up(reinterpret_cast<Graph*>(executable));
  RETURN(cudaSuccess);
}
static void list(size_t there, const std::function<void*(size_t)>& at, cudaGraphNode_t* out, size_t* count) {
  for (size_t i = 0; out && i < *count && i < there; ++i) out[i] = static_cast<cudaGraphNode_t>(at(i));
  *count = there;
}
EXPORT cudaError_t cudaGraphGetNodes(cudaGraph_t g, cudaGraphNode_t* out, size_t* count) {
  auto& nodes = graph(g)->nodes;
  list(nodes.size(), [&](size_t i) { return nodes[i].get(); }, out, count);
  return cudaSuccess;
}
EXPORT cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* out, cudaGraphEdgeData*,
                                                size_t* count) {
  auto& after = reinterpret_cast<Node*>(node)->after;
  list(after.size(), [&](size_t i) { return after[i]; }, out, count);
  return cudaSuccess;
}
