// What GCC's -fsanitize=thread calls before each load and store of a kernel. The sanitizer's own
// library is not linked.
// SPDX-License-Identifier: Apache-2.0
#include <cstddef>

#include "watch.h"

using vfm::emulation::Access;

// In whole parts of the library nobody watches, and this is all that it costs.
#define VFM_WATCHED(...) \
  if (vfm::emulation::watched::active) vfm::emulation::watched::load_or_store(__VA_ARGS__)

extern "C" {

// NOLINTBEGIN: the compiler's names
void __tsan_init() {}
void __tsan_vptr_update(void**, void*) {}  // in host code beside kernels
#define VFM_ACCESS(bytes)                                                      \
  void __tsan_read##bytes(void* at) {                                          \
    VFM_WATCHED(at, bytes, true, Access::read, __builtin_return_address(0));   \
  }                                                                            \
  void __tsan_write##bytes(void* at) {                                         \
    VFM_WATCHED(at, bytes, true, Access::write, __builtin_return_address(0));  \
  }                                                                            \
  void __tsan_unaligned_read##bytes(void* at) {                                \
    VFM_WATCHED(at, bytes, false, Access::read, __builtin_return_address(0));  \
  }                                                                            \
  void __tsan_unaligned_write##bytes(void* at) {                               \
    VFM_WATCHED(at, bytes, false, Access::write, __builtin_return_address(0)); \
  }
VFM_ACCESS(1)
VFM_ACCESS(2)
VFM_ACCESS(4)
VFM_ACCESS(8)
VFM_ACCESS(16)
void __tsan_read_range(void* at, std::size_t bytes) {
  VFM_WATCHED(at, bytes, false, Access::read, __builtin_return_address(0));
}
void __tsan_write_range(void* at, std::size_t bytes) {
  VFM_WATCHED(at, bytes, false, Access::write, __builtin_return_address(0));
}
// NOLINTEND
}
