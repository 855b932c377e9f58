// libcusparse.so.12.
#include "library.h"

using namespace fake;

struct Matrix {
  int64_t rows, columns, entries;
};
static double reading(double bytes) { return 2 * double(settings().kernel) + bytes / settings().device_rate; }
static Shape shape(double rows, int in_a_block) { return {{tiles(rows, in_a_block), 1, 1}, {128, 1, 1}, 0}; }

EXPORT int cusparseCreate(void** handle) {
  *handle = new Handle;
  return 0;
}
EXPORT int cusparseDestroy(void* handle) {
  delete static_cast<Handle*>(handle);
  return 0;
}
EXPORT int cusparseSetStream(void* handle, void* stream) {
  static_cast<Handle*>(handle)->stream = &stream_of(stream);
  return 0;
}
EXPORT int cusparseSetPointerMode(void*, int) { return 0; }
EXPORT const char* cusparseGetErrorString(int) { return "an error of the fake cuSPARSE"; }
EXPORT int cusparseCreateCsr(Matrix** out, int64_t rows, int64_t columns, int64_t entries) {
  *out = new Matrix{rows, columns, entries};
  return 0;
}
EXPORT int cusparseCreateCoo(Matrix** out, int64_t rows, int64_t columns, int64_t entries) {
  *out = new Matrix{rows, columns, entries};
  return 0;
}
EXPORT int cusparseCreateDnMat(Matrix** out, int64_t rows, int64_t columns) {
  *out = new Matrix{rows, columns, rows * columns};
  return 0;
}
EXPORT int cusparseCreateDnVec(Matrix** out, int64_t size) {
  *out = new Matrix{size, 1, size};
  return 0;
}
EXPORT int cusparseDestroySpMat(Matrix* matrix) {
  delete matrix;
  return 0;
}
EXPORT int cusparseDestroyDnMat(Matrix* matrix) { return cusparseDestroySpMat(matrix); }
EXPORT int cusparseDestroyDnVec(Matrix* matrix) { return cusparseDestroySpMat(matrix); }
EXPORT int cusparseSpMM_bufferSize(void*, int, int, const void*, void*, void*, const void*, void*, int, int,
                                   size_t* bytes) {
  *bytes = 0;
  return 0;
}
EXPORT int cusparseSpMV_bufferSize(void*, int, const void*, void*, void*, const void*, void*, int, int, size_t* bytes) {
  *bytes = 0;
  return 0;
}
EXPORT int cusparseSDDMM_bufferSize(void*, int, int, const void*, void*, void*, const void*, void*, int, int,
                                    size_t* bytes) {
  *bytes = 0;
  return 0;
}
EXPORT int cusparseSDDMM_preprocess(void*) { return 0; }
EXPORT int cusparseSpMM(void* handle, int, int, const void*, Matrix* a, Matrix* b) {
  launch_kernel("void cusparse::csrmm_v2_kernel<float>(...)", shape(double(a->rows), 4), stream_of_handle(handle),
                reading(8 * double(a->entries) * double(b->columns)));
  return 0;
}
EXPORT int cusparseSpMV(void* handle, int, const void*, Matrix* a) {
  launch_kernel("void cusparse::csrmv_v3_kernel<float>(...)", shape(double(a->rows), 128), stream_of_handle(handle),
                reading(8 * double(a->entries)));
  return 0;
}
EXPORT int cusparseSDDMM(void* handle, int, int, const void*, Matrix* a, Matrix*, const void*, Matrix* c) {
  launch_kernel("void cusparse::sddmm_kernel<float>(...)", shape(double(c->rows), 4), stream_of_handle(handle),
                reading(8 * double(c->entries) * double(a->columns)));
  return 0;
}
EXPORT int cusparseXcoo2csr(void* handle, const int*, int entries, int rows) {
  launch_kernel("void cusparse::coo2csr_kernel<int>(...)", shape(rows, 128), stream_of_handle(handle),
                reading(4.0 * entries));
  return 0;
}
