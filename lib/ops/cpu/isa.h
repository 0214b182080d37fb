// The instruction set of the CPU kernels, chosen at run time.
//
// Some files x_cpu.cc, listed in lib/ops/meson.build, are compiled once per instruction set, into a
// namespace of that name (the macro VFM_ISA). ops/kernel.h declares every version. Such a file
// holds plain loops over pointers and must not include inline functions of external linkage: the
// linker would keep one of their copies, perhaps the one for AVX-512. It may use ops/cpu/simd.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace vfm::ops {

/// x86-64-v2 (or another architecture), v3 (AVX2, FMA), v4 (AVX-512), AVX-512 with bf16 products,
/// AMX with products of bf16 tiles. The last three differ only in attention and products of bf16.
enum class Isa { base, avx2, avx512, avx512_bf16, amx };

/// Returns the best instruction set of this machine.
Isa isa() noexcept;
/// For tests: isa() returns at most `limit` from now on.
void limit_isa(Isa limit) noexcept;

}  // namespace vfm::ops
