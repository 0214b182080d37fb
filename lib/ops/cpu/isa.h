// Which instruction set the CPU kernels use, chosen at run time.
//
// A file x_cpu.cc is compiled once per instruction set, into a namespace of that name (the macro
// VFM_ISA); its header declares every version, and x.cc calls the one that isa() names. Such a
// file holds plain loops over pointers and includes nothing with inline functions of external
// linkage (ops/cpu/simd.h has what it may use): the linker would keep any one of their copies, for
// AVX-512 perhaps.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace vfm::ops {

/// x86-64-v2 (or another architecture), v3 (AVX2, FMA), v4 (AVX-512); the same with products of
/// bf16; the same with products of bf16 tiles. Only attention on bf16 tells the last three apart.
enum class Isa { base, avx2, avx512, avx512_bf16, amx };

/// The best that this machine has.
Isa isa() noexcept;
/// For tests: no better than `limit` from now on.
void limit_isa(Isa limit) noexcept;

}  // namespace vfm::ops

/// Declares functions in each instruction set's namespace, and in that of the CUDA versions.
#define VFM_EACH_ISA(...) \
  namespace base {        \
  __VA_ARGS__             \
  }                       \
  namespace avx2 {        \
  __VA_ARGS__             \
  }                       \
  namespace avx512 {      \
  __VA_ARGS__             \
  }                       \
  namespace cuda {        \
  __VA_ARGS__             \
  }

/// Calls the best version of function(...).
#define VFM_CALL(function, ...)                                                 \
  (::vfm::ops::isa() >= ::vfm::ops::Isa::avx512 ? avx512::function(__VA_ARGS__) \
   : ::vfm::ops::isa() == ::vfm::ops::Isa::avx2 ? avx2::function(__VA_ARGS__)   \
                                                : base::function(__VA_ARGS__))
