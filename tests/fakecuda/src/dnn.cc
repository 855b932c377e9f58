// libcudnn.so.9, as far as convolutions need it: one engine, one plan, one kernel.
#include "library.h"

using namespace fake;

struct Descriptor {
  int type;
};
enum Attribute { heuristic_results = 202, workspace_bytes = 402 };

EXPORT size_t cudnnGetVersion() { return 92000; }
EXPORT size_t cudnnGetCudartVersion() { return 13000; }
EXPORT int cudnnGetProperty(int which, int* value) {
  *value = which == 0 ? 9 : which == 1 ? 20 : 0;
  return 0;
}
EXPORT const char* cudnnGetErrorString(int) { return "an error of the fake cuDNN"; }
EXPORT int cudnnCreate(void** handle) {
  *handle = new Handle;
  return 0;
}
EXPORT int cudnnSetStream(void* handle, void* stream) {
  static_cast<Handle*>(handle)->stream = &stream_of(stream);
  return 0;
}
EXPORT int cudnnGetStream(void* handle, void** stream) {
  *stream = static_cast<Handle*>(handle)->stream;
  return 0;
}
EXPORT int cudnnBackendCreateDescriptor(int type, Descriptor** out) {
  *out = new Descriptor{type};
  return 0;
}
EXPORT int cudnnBackendDestroyDescriptor(Descriptor* descriptor) {
  delete descriptor;
  return 0;
}
EXPORT int cudnnBackendSetAttribute(Descriptor*, int, int, int64_t, const void*) { return 0; }
EXPORT int cudnnBackendFinalize(Descriptor*) { return 0; }
EXPORT int cudnnBackendGetAttribute(Descriptor*, int attribute, int, int64_t, int64_t* count, void* out) {
  const bool one = attribute == heuristic_results || attribute == workspace_bytes;
  if (count) *count = one;
  if (attribute == workspace_bytes) *static_cast<int64_t*>(out) = 0;
  return 0;
}
EXPORT int cudnnBackendExecute(void* handle, Descriptor*, Descriptor*) {
  launch_kernel("sm90_xmma_fprop_implicit_gemm_f32f32_tf32f32_f32_nhwckrsc_nhwc_cudnn",
                {{64, 1, 1}, {256, 1, 1}, 49152}, stream_of_handle(handle), 4 * double(settings().kernel));
  return 0;
}
