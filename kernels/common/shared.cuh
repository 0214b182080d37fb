// The dynamic shared memory of a block. Device code only.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace vfm::kernels {

#ifdef __CUDACC__
/// Aligned to 1,024 bytes, as swizzled tiles require.
__device__ __forceinline__ unsigned char* shared_memory() {
  extern __shared__ __align__(1024) unsigned char vfm_shared_memory[];
  return vfm_shared_memory;
}
#else
inline unsigned char* shared_memory() {
  return vfm::emulation::shared_memory();
}
#endif

}  // namespace vfm::kernels
