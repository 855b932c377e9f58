// libcuda.so.1: what torch and Triton call of the driver.
#include <cuda.h>
#include <dlfcn.h>
#include <elf.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "device.h"

using namespace fake;

namespace fake {
int attribute(int which) {
  switch (which) {
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y:
    case CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK:
      return 1024;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z:
      return 64;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X:
    case CU_DEVICE_ATTRIBUTE_MAX_PITCH:
      return 2147483647;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z:
      return 65535;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
      return 49152;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
      return 232448;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
      return 233472;
    case CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY:
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK:
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR:
      return 65536;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR:
      return 32;
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
      return int(settings().clock_ghz * 1e6);
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
      return 2619000;
    case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:
      return 5120;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
      return 50 << 20;
    case CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT:
      return 512;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      return multiprocessors;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
      return 2048;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      return 9;
    case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT:
      return 3;
    case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
    case CU_DEVICE_ATTRIBUTE_ECC_ENABLED:
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
    case CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY:
    case CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH:
    case CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH:
    case CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED:
      return 1;
    default:
      return 0;
  }
}
}  // namespace fake

// A context is the number of its device, from 1.
static CUcontext context(int device) { return reinterpret_cast<CUcontext>(uintptr_t(device + 1)); }
static Kernel& kernel(CUfunction f) { return *reinterpret_cast<Kernel*>(f); }
static Event& event(CUevent e) { return *reinterpret_cast<Event*>(e); }

EXPORT CUresult cuInit(unsigned) { return CUDA_SUCCESS; }
EXPORT CUresult cuDriverGetVersion(int* version) {
  *version = CUDA_VERSION;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuGetErrorString(CUresult error, const char** text) {
  *text = error == CUDA_SUCCESS ? "no error" : "an error of the fake CUDA driver";
  return CUDA_SUCCESS;
}
EXPORT CUresult cuGetErrorName(CUresult error, const char** name) {
  *name = error == CUDA_SUCCESS ? "CUDA_SUCCESS" : "CUDA_ERROR_UNKNOWN";
  return CUDA_SUCCESS;
}
// The newest version of a function.
EXPORT CUresult cuGetProcAddress_v2(const char* name, void** function, int, cuuint64_t,
                                    CUdriverProcAddressQueryResult* found) {
  static void* const self = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_NOW);
  *function = nullptr;
  for (const char* version : {"_v4", "_v3", "_v2", ""})
    if (!*function) *function = dlsym(self, (std::string(name) + version).c_str());
  if (found) *found = *function ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

// ---- devices and contexts
EXPORT CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  *device = ordinal;
  return ordinal < settings().devices ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
EXPORT CUresult cuDeviceGetCount(int* count) {
  *count = settings().devices;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuDeviceGetName(char* name, int size, CUdevice) {
  snprintf(name, size, "%s", device_name);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice) {
  *bytes = settings().memory_bytes;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute which, CUdevice) {
  *value = attribute(which);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  for (int i = 0; i < 16; ++i) uuid->bytes[i] = char(0xA0 + i + device);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuDevicePrimaryCtxGetState(CUdevice, unsigned* flags, int* active) {
  *flags = 0;
  *active = 1;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext* c, CUdevice device) {
  *c = context(device);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice) { return CUDA_SUCCESS; }
EXPORT CUresult cuCtxGetCurrent(CUcontext* c) {
  *c = context(current_device());
  return CUDA_SUCCESS;
}
EXPORT CUresult cuCtxSetCurrent(CUcontext c) {
  if (c) current_device() = int(reinterpret_cast<uintptr_t>(c)) - 1;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuCtxPushCurrent_v2(CUcontext c) { return cuCtxSetCurrent(c); }
EXPORT CUresult cuCtxPopCurrent_v2(CUcontext* c) { return c ? cuCtxGetCurrent(c) : CUDA_SUCCESS; }
EXPORT CUresult cuCtxGetDevice(CUdevice* device) {
  *device = current_device();
  return CUDA_SUCCESS;
}
EXPORT CUresult cuCtxSynchronize() {
  CALL(driver);
  synchronize_device();
  return CUDA_SUCCESS;
}

// ---- modules: the sections of a cubin name its kernels, their registers and their shared memory
struct Module {
  std::map<std::string, Kernel> kernels;
  Kernel& named(const std::string& name) {
    Kernel& kernel = kernels[name];
    kernel.name = intern(name);
    kernel.module = this;
    return kernel;
  }
};
EXPORT CUresult cuModuleLoadData(CUmodule* out, const void* image) {
  CALL(driver);
  auto* module = new Module;
  *out = reinterpret_cast<CUmodule>(module);
  auto* bytes = static_cast<const char*>(image);
  auto* header = static_cast<const Elf64_Ehdr*>(image);
  if (memcmp(header->e_ident, ELFMAG, SELFMAG)) return CUDA_SUCCESS;
  auto* sections = reinterpret_cast<const Elf64_Shdr*>(bytes + header->e_shoff);
  const char* names = bytes + sections[header->e_shstrndx].sh_offset;
  const std::string code = ".text.", shared = ".nv.shared.";
  for (int i = 0; i < header->e_shnum; ++i) {
    const std::string name = names + sections[i].sh_name;
    if (!name.compare(0, code.size(), code))
      module->named(name.substr(code.size())).registers = int(sections[i].sh_info >> 24);
    else if (!name.compare(0, shared.size(), shared))
      module->named(name.substr(shared.size())).static_shared = int(sections[i].sh_size);
  }
  return CUDA_SUCCESS;
}
EXPORT CUresult cuModuleLoadDataEx(CUmodule* out, const void* image, unsigned, CUjit_option*, void**) {
  return cuModuleLoadData(out, image);
}
EXPORT CUresult cuModuleLoad(CUmodule* out, const char* path) {
  std::ifstream file(path, std::ios::binary);
  const std::string image{std::istreambuf_iterator<char>(file), {}};
  return file ? cuModuleLoadData(out, image.c_str()) : CUDA_ERROR_FILE_NOT_FOUND;
}
EXPORT CUresult cuModuleUnload(CUmodule module) {
  delete reinterpret_cast<Module*>(module);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuModuleGetFunction(CUfunction* f, CUmodule module, const char* name) {
  *f = reinterpret_cast<CUfunction>(&reinterpret_cast<Module*>(module)->named(name));
  return CUDA_SUCCESS;
}
EXPORT CUresult cuFuncGetModule(CUmodule* module, CUfunction f) {
  *module = static_cast<CUmodule>(kernel(f).module);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuFuncGetAttribute(int* value, CUfunction_attribute which, CUfunction f) {
  const Kernel& k = kernel(f);
  *value = which == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK                                      ? k.max_threads
           : which == CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES                                        ? k.static_shared
           : which == CU_FUNC_ATTRIBUTE_NUM_REGS                                                 ? k.registers
           : which == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES                            ? k.max_dynamic_shared
           : which == CU_FUNC_ATTRIBUTE_PTX_VERSION || which == CU_FUNC_ATTRIBUTE_BINARY_VERSION ? 90
                                                                                                 : 0;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuFuncSetAttribute(CUfunction f, CUfunction_attribute which, int value) {
  if (which == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) kernel(f).max_dynamic_shared = value;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuFuncSetCacheConfig(CUfunction, CUfunc_cache) { return CUDA_SUCCESS; }
EXPORT CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction f, int threads, size_t shared) {
  *blocks = blocks_per_multiprocessor(kernel(f), threads, shared);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuOccupancyMaxActiveClusters(int* clusters, CUfunction, const CUlaunchConfig*) {
  *clusters = multiprocessors;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*,
                                       const cuuint64_t*, const cuuint32_t*, const cuuint32_t*, CUtensorMapInterleave,
                                       CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
  memset(map, 0, sizeof *map);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                               unsigned bz, unsigned shared, CUstream stream, void**, void**) {
  CALL(driver);
  launch(kernel(f), {{gx, gy, gz}, {bx, by, bz}, shared}, stream_of(stream));
  return CUDA_SUCCESS;
}
EXPORT CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                                          unsigned bz, unsigned shared, CUstream stream, void**) {
  CALL(driver);
  launch(kernel(f), {{gx, gy, gz}, {bx, by, bz}, shared}, stream_of(stream));
  return CUDA_SUCCESS;
}
EXPORT CUresult cuLaunchKernelEx(const CUlaunchConfig* c, CUfunction f, void**, void**) {
  CALL(driver);
  launch(kernel(f),
         {{c->gridDimX, c->gridDimY, c->gridDimZ}, {c->blockDimX, c->blockDimY, c->blockDimZ}, c->sharedMemBytes},
         stream_of(c->hStream));
  return CUDA_SUCCESS;
}

// ---- memory, streams, events
EXPORT CUresult cuPointerGetAttribute(void* out, CUpointer_attribute which, CUdeviceptr p) {
  const Block block = block_of(reinterpret_cast<void*>(p));
  if (block.memory == Memory::unknown) return CUDA_ERROR_INVALID_VALUE;
  const bool on_device = block.memory == Memory::device;
  switch (which) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      *static_cast<CUcontext*>(out) = context(block.device);
      break;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      *static_cast<unsigned*>(out) = on_device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
      break;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      *static_cast<CUdeviceptr*>(out) = p;
      break;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      *static_cast<uintptr_t*>(out) = block.start;
      break;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      *static_cast<size_t*>(out) = block.bytes;
      break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      *static_cast<int*>(out) = block.device;
      break;
    default:
      *static_cast<int*>(out) = 0;
  }
  return CUDA_SUCCESS;
}
EXPORT CUresult cuMemGetAddressRange_v2(CUdeviceptr* start, size_t* bytes, CUdeviceptr p) {
  const Block block = block_of(reinterpret_cast<void*>(p));
  if (start) *start = block.start;
  if (bytes) *bytes = block.bytes;
  return block.memory == Memory::unknown ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
EXPORT CUresult cuMemGetInfo_v2(size_t* free, size_t* total) {
  *total = settings().memory_bytes;
  *free = *total - used_bytes(current_device());
  return CUDA_SUCCESS;
}
EXPORT CUresult cuMemAlloc_v2(CUdeviceptr* p, size_t bytes) {
  CALL(driver);
  *p = reinterpret_cast<CUdeviceptr>(allocate(bytes, Memory::device));
  return *p ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
EXPORT CUresult cuMemFree_v2(CUdeviceptr p) {
  CALL(driver);
  synchronize_device();
  return release(reinterpret_cast<void*>(p)) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
EXPORT CUresult cuMemsetD32Async(CUdeviceptr p, unsigned value, size_t count, CUstream stream) {
  CALL(driver);
  fill(reinterpret_cast<void*>(p), int(value), 4, 4 * count, stream_of(stream));
  return CUDA_SUCCESS;
}
EXPORT CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  CALL(driver);
  copy(to, 0, reinterpret_cast<void*>(from), 0, bytes, 1, stream_of(stream), false);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  CALL(driver);
  copy(reinterpret_cast<void*>(to), 0, from, 0, bytes, 1, stream_of(stream), false);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuStreamSynchronize(CUstream stream) {
  CALL(driver);
  synchronize(stream_of(stream));
  return CUDA_SUCCESS;
}
EXPORT CUresult cuStreamGetCtx(CUstream stream, CUcontext* c) {
  *c = context(stream_of(stream).device);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  *status = stream_of(stream).capture ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuEventCreate(CUevent* e, unsigned) {
  *e = reinterpret_cast<CUevent>(make_event());
  return CUDA_SUCCESS;
}
EXPORT CUresult cuEventRecord(CUevent e, CUstream stream) {
  CALL(driver);
  record(event(e), stream_of(stream));
  return CUDA_SUCCESS;
}
EXPORT CUresult cuEventDestroy_v2(CUevent e) {
  delete &event(e);
  return CUDA_SUCCESS;
}
