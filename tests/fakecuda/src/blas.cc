// libcublas.so.13 and, with -DLT, libcublasLt.so.13.
#include <cstring>

#include "library.h"

using namespace fake;

static void multiply(const char* type, Stream& stream, double m, double n, double k, double batch = 1) {
  const int tile = m * n < 64 * 64 ? 32 : m * n < 512 * 512 ? 64 : 128;
  const double flops = 2 * m * n * k * std::max(1.0, batch);
  const std::string size = std::to_string(tile);
  launch_kernel(std::string("sm90_xmma_gemm_") + type + "_tilesize" + size + "x" + size + "x32_cublas",
                {{tiles(m, tile), tiles(n, tile), tiles(batch, 1)}, {256, 1, 1}, 49152}, stream,
                1.5 * double(settings().kernel) + flops / settings().tflops / 1e3);
}

#ifndef LT
EXPORT int cublasCreate_v2(void** handle) {
  *handle = new Handle;
  return 0;
}
EXPORT int cublasDestroy_v2(void* handle) {
  delete static_cast<Handle*>(handle);
  return 0;
}
EXPORT int cublasSetStream_v2(void* handle, void* stream) {
  static_cast<Handle*>(handle)->stream = &stream_of(stream);
  return 0;
}
EXPORT int cublasSetWorkspace_v2(void*, void*, size_t) { return 0; }
EXPORT int cublasSetSmCountTarget(void*, int) { return 0; }
EXPORT int cublasSetMathMode(void* handle, int mode) {
  static_cast<Handle*>(handle)->math_mode = mode;
  return 0;
}
EXPORT int cublasGetMathMode(void* handle, int* mode) {
  *mode = static_cast<Handle*>(handle)->math_mode;
  return 0;
}
EXPORT int cublasSetPointerMode_v2(void* handle, int mode) {
  static_cast<Handle*>(handle)->pointer_mode = mode;
  return 0;
}
EXPORT int cublasGetPointerMode_v2(void* handle, int* mode) {
  *mode = static_cast<Handle*>(handle)->pointer_mode;
  return 0;
}

#define FOR_TYPE(T, type, bytes)                                                                                       \
  EXPORT int cublas##T##gemm_v2(void* handle, int, int, int m, int n, int k) {                                         \
    multiply(type, stream_of_handle(handle), m, n, k);                                                                 \
    return 0;                                                                                                          \
  }                                                                                                                    \
  EXPORT int cublas##T##gemmStridedBatched(void* handle, int, int, int m, int n, int k, const void*, const void*, int, \
                                           long long, const void*, int, long long, const void*, void*, int, long long, \
                                           int batch) {                                                                \
    multiply(type, stream_of_handle(handle), m, n, k, batch);                                                          \
    return 0;                                                                                                          \
  }                                                                                                                    \
  EXPORT int cublas##T##gemv_v2(void* handle, int, int m, int n) {                                                     \
    launch_kernel("void gemvNSP_kernel<" type ">(...)", {{tiles(m, 128), 1, 1}, {128, 1, 1}, 0},                       \
                  stream_of_handle(handle),                                                                            \
                  double(settings().kernel) + double(m) * n * bytes / settings().device_rate);                         \
    return 0;                                                                                                          \
  }                                                                                                                    \
  EXPORT int cublas##T##dot_v2(void* handle, int n) {                                                                  \
    launch_kernel("void dot_kernel<" type ">(...)", {{tiles(n, 128), 1, 1}, {128, 1, 1}, 0}, stream_of_handle(handle), \
                  double(settings().kernel) + double(n) * bytes / settings().device_rate);                             \
    return 0;                                                                                                          \
  }
FOR_TYPE(S, "f32f32", 4)
FOR_TYPE(D, "f64f64", 8)
FOR_TYPE(C, "c64c64", 8)
FOR_TYPE(Z, "c128c128", 16)
EXPORT int cublasGemmEx(void* handle, int, int, int m, int n, int k) {
  multiply("bf16bf16", stream_of_handle(handle), m, n, k);
  return 0;
}
EXPORT int cublasSgemmEx(void* handle, int, int, int m, int n, int k) {
  multiply("f16f16", stream_of_handle(handle), m, n, k);
  return 0;
}
EXPORT int cublasGemmStridedBatchedEx(void* handle, int, int, int m, int n, int k, const void*, const void*, int, int,
                                      long long, const void*, int, int, long long, const void*, void*, int, int,
                                      long long, int batch) {
  multiply("bf16bf16", stream_of_handle(handle), m, n, k, batch);
  return 0;
}

#else
struct Multiplication {
  int transposed_a = 0;
};
struct Layout {
  int type;
  uint64_t rows, columns;
  int batch = 1;
};
struct Heuristic {
  uint64_t algorithm[8];
  size_t workspace_bytes;
  int state;
  float waves;
  int reserved[4];
};
static_assert(sizeof(Heuristic) == 96, "cublasLtMatmulHeuristicResult_t");

EXPORT size_t cublasLtGetVersion() { return 130100; }
EXPORT int cublasLtCreate(void** handle) {
  *handle = new Handle;
  return 0;
}
EXPORT int cublasLtMatmulDescCreate(Multiplication** description, int, int) {
  *description = new Multiplication;
  return 0;
}
EXPORT int cublasLtMatmulDescDestroy(Multiplication* description) {
  delete description;
  return 0;
}
EXPORT int cublasLtMatmulDescSetAttribute(Multiplication* description, int which, const void* value, size_t) {
  constexpr int transposed_a = 3;
  if (which == transposed_a) memcpy(&description->transposed_a, value, 4);
  return 0;
}
EXPORT int cublasLtMatrixLayoutCreate(Layout** layout, int type, uint64_t rows, uint64_t columns, int64_t) {
  *layout = new Layout{type, rows, columns};
  return 0;
}
EXPORT int cublasLtMatrixLayoutDestroy(Layout* layout) {
  delete layout;
  return 0;
}
EXPORT int cublasLtMatrixLayoutSetAttribute(Layout* layout, int which, const void* value, size_t) {
  constexpr int batch = 5;
  if (which == batch) memcpy(&layout->batch, value, 4);
  return 0;
}
EXPORT int cublasLtMatmulPreferenceCreate(void** preference) {
  *preference = new char;
  return 0;
}
EXPORT int cublasLtMatmulPreferenceDestroy(void* preference) {
  delete static_cast<char*>(preference);
  return 0;
}
EXPORT int cublasLtMatmulPreferenceSetAttribute(void*, int, const void*, size_t) { return 0; }
EXPORT int cublasLtMatmulAlgoGetHeuristic(void*, void*, void*, void*, void*, void*, void*, int, Heuristic* out,
                                          int* count) {
  *out = {};
  out->waves = 1;
  *count = 1;
  return 0;
}
EXPORT int cublasLtMatmul(void*, Multiplication* description, const void*, const void*, Layout* a, const void*, Layout*,
                          const void*, const void*, Layout*, void*, Layout* d, const void*, void*, size_t,
                          void* stream) {
  constexpr int float32 = 0;
  multiply(d->type == float32 ? "f32f32" : "bf16bf16", stream_of(stream), double(d->rows), double(d->columns),
           double(description->transposed_a ? a->rows : a->columns), d->batch);
  return 0;
}
#endif
