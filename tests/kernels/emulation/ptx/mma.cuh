// kernels/ptx/mma.cuh for the emulation: what a lane holds is told there.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../cuda_runtime.h"
#include "../matrices.h"

namespace vfm::kernels {

using vfm::emulation::shared_address;
using vfm::emulation::SharedAddress;

// By way of copies, so that a kernel's own arrays are nobody else's: the compiler keeps them in
// registers, and nobody watches them.
__forceinline__ void load_matrices(unsigned (&to)[4], SharedAddress row) {
  const vfm::emulation::Words words = vfm::emulation::load_matrices(row);
  to[0] = words.w[0], to[1] = words.w[1], to[2] = words.w[2], to[3] = words.w[3];
}
__forceinline__ void load_transposed(unsigned (&to)[4], SharedAddress row) {
  const vfm::emulation::Words words = vfm::emulation::load_transposed(row);
  to[0] = words.w[0], to[1] = words.w[1], to[2] = words.w[2], to[3] = words.w[3];
}
__forceinline__ void multiply_add(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  const vfm::emulation::Sums sums =
      vfm::emulation::multiply_add({{c[0], c[1], c[2], c[3]}}, {{a[0], a[1], a[2], a[3]}}, b0, b1);
  c[0] = sums.v[0], c[1] = sums.v[1], c[2] = sums.v[2], c[3] = sums.v[3];
}

__forceinline__ void copy_async_16(SharedAddress to, const void* from, bool valid) {
  vfm::emulation::copy_begins(to, from, valid, 16);
}
__forceinline__ void copy_async_8(SharedAddress to, const void* from, bool valid) {
  vfm::emulation::copy_begins(to, from, valid, 8);
}
__forceinline__ void copy_async_commit() {
  vfm::emulation::copy_commit();
}
template <int kLeft>
__forceinline__ void copy_async_wait() {
  vfm::emulation::copy_wait(kLeft);
}

}  // namespace vfm::kernels
