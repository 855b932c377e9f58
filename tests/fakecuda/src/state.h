// What the device's own sources share.
#pragma once
#include <map>
#include <mutex>

#include "device.h"

namespace fake {

std::recursive_mutex& lock();
#define LOCKED std::lock_guard<std::recursive_mutex> locked__(fake::lock())

// What is known of device memory. Kernels compute nothing, so that what the host reads would be whatever was there
// before: sizes of billions, losses of 1e12. Therefore it reads zeros (true after all()), unless a copy or a memset
// wrote exactly what is read and, if that is a scalar, no kernel has run since.
class Contents {
 public:
  void written(const void* to, size_t bytes);
  void forget(uintptr_t start, size_t bytes);
  void ran(const char* kernel);
  bool known(const void* from, size_t bytes) const;
  bool all_true() const { return all_true_; }

 private:
  struct Written {
    size_t bytes;
    uint64_t run;  // how many kernels had run
  };
  std::map<uintptr_t, Written> written_;
  uint64_t runs_ = 0;
  bool all_true_ = false;
};

struct State {
  std::map<uintptr_t, Block> blocks;
  std::vector<std::vector<std::unique_ptr<Stream>>> devices;  // the first stream of each is the legacy default one
  Contents contents;
  Stream& legacy(int device);
};
State& state();

}  // namespace fake
