// Which instruction set the CPU kernels use, chosen at run time.
//
// A file x_cpu.cc that lib/ops/meson.build lists as such is compiled once per instruction set, into
// a namespace of that name (the macro VFM_ISA); ops/kernel.h declares every version. Such a file
// holds plain loops over pointers and includes nothing with inline functions of external linkage
// (ops/cpu/simd.h has what it may use): the linker would keep any one of their copies, for AVX-512
// perhaps.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace vfm::ops {

/// x86-64-v2 (or another architecture), v3 (AVX2, FMA), v4 (AVX-512); the same with products of
/// bf16; the same with products of bf16 tiles. The last three differ in bf16 attention only.
enum class Isa { base, avx2, avx512, avx512_bf16, amx };

/// The best that this machine has.
Isa isa() noexcept;
/// For tests: no better than `limit` from now on.
void limit_isa(Isa limit) noexcept;

}  // namespace vfm::ops
