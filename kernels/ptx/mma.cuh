// Tensor core instructions of sm_80 and later as functions: matrix products in registers, loads of
// operands from shared memory, and asynchronous copies from global to shared memory.
//
// A warp multiplies a [16, 16] by b [16, 8], bf16, and adds to c [16, 8], f32. With group = lane /
// 4 and t = lane % 4, a lane holds
//   c: rows group and group + 8 (elements 0, 1 and 2, 3), columns 2 t and 2 t + 1;
//   a: rows group, group + 8, group, group + 8, columns 2 t and 2 t + 1, in the last two words + 8;
//   b: column group, rows 2 t and 2 t + 1, in the second word + 8.
// The rounded accumulators of two neighbouring column tiles are therefore an operand `a`.
// Source: PTX ISA, "Matrix fragments for mma.m16n8k16" and "ldmatrix".
// tests/kernels/emulation/ptx/mma.cuh has the same functions for the host. Device code only.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace vfm::kernels {

/// An offset in bytes from the start of shared memory.
using SharedAddress = std::uint32_t;

__device__ __forceinline__ SharedAddress shared_address(const void* pointer) {
  return static_cast<SharedAddress>(__cvta_generic_to_shared(pointer));
}

/// Loads four 8 x 8 matrices of 16-bit elements. Lane i passes the address of row i % 8 of matrix
/// i / 8, 16 bytes. It receives elements 2 t and 2 t + 1 of row `group` of each matrix.
__device__ __forceinline__ void load_matrices(unsigned (&to)[4], SharedAddress row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(row)
               : "memory");
}

/// load_matrices() for the transposed matrices.
__device__ __forceinline__ void load_transposed(unsigned (&to)[4], SharedAddress row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(row)
               : "memory");
}

/// c += a b.
__device__ __forceinline__ void multiply_add(float (&c)[4], const unsigned (&a)[4], unsigned b0,
                                             unsigned b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// Starts a copy of 16 bytes, aligned to 16. If not `valid`, writes zeros and does not read `from`.
__device__ __forceinline__ void copy_async_16(SharedAddress to, const void* from, bool valid) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;"
               :
               : "r"(to), "l"(__cvta_generic_to_global(from)), "r"(valid ? 16 : 0)
               : "memory");
}

/// Starts a copy of 8 bytes, like copy_async_16().
__device__ __forceinline__ void copy_async_8(SharedAddress to, const void* from, bool valid) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;"
               :
               : "r"(to), "l"(__cvta_generic_to_global(from)), "r"(valid ? 8 : 0)
               : "memory");
}

/// Closes a group: the copies that this thread started since the previous group.
__device__ __forceinline__ void copy_async_commit() {
  asm volatile("cp.async.commit_group;" : : : "memory");
}

/// Waits until at most kLeft groups of this thread are under way. Copies of other threads are
/// visible after a later barrier.
template <int kLeft>
__device__ __forceinline__ void copy_async_wait() {
  asm volatile("cp.async.wait_group %0;" : : "n"(kLeft) : "memory");
}

}  // namespace vfm::kernels
