// What the numerical libraries share. There are no headers of them: the signatures are those of NVIDIA's documentation,
// as far as an argument matters here; callers leave the others on the stack.
#pragma once
#include <algorithm>
#include <cmath>
#include <string>

#include "device.h"

namespace fake {

struct Handle {
  Stream* stream = nullptr;
  int math_mode = 0, pointer_mode = 0;
};
inline Stream& stream_of_handle(void* handle) {
  auto* stream = static_cast<Handle*>(handle)->stream;
  return stream ? *stream : stream_of(nullptr);
}
inline unsigned tiles(double count, double size) { return unsigned(std::max(1.0, std::ceil(count / size))); }

// A library launches its kernels as everyone does, through the runtime.
inline void launch_kernel(const std::string& name, const Shape& shape, Stream& stream, double lasting_ns) {
  static const int number = number_of(Kind::runtime, "cudaLaunchKernel");
  Call call(Kind::runtime, number, "cudaLaunchKernel");
  launch(*library_kernel(name.c_str()), shape, stream, nullptr, Ns(lasting_ns));
}

}  // namespace fake
