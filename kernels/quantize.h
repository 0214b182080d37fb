// A tensor as E4M3, the 8-bit float of lib/base/float8.h, and one scale: the CUDA version of
// lib/ops/matmul/quantize.h.
//
//   scale = max(largest |x|, 2^-40) / 448, value = x / scale rounded to nearest, ties to even
//
// Two launches: the largest magnitudes of parts of x, then the values, for which each block takes
// the largest of the parts' again. A maximum depends on no order, so the bits are the same on every
// GPU, and on the CPU. NaN or infinity in x makes the scale and all values NaN: one scale has no
// room for both infinity and the others, and nobody may overlook it.
// Of gelu(x), with `gelu`, in the numbers of gelu_forward() (elementwise.h) and then this, to the
// bit: both launches read x and compute, and gelu(x) is in no memory.
// Thread-safety: launches on the given stream; keeps nothing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "type.h"

struct CUstream_st;  // cudaStream_t

namespace vfm::kernels {

/// The largest value of E4M3, and the smallest range that is spread over it: its scale and the
/// product of two of them are far from underflow.
inline constexpr float kFp8Largest = 448, kFp8SmallestRange = 0x1p-40f;
/// The most parts that x is cut into.
inline constexpr int kQuantizeParts = 512;

struct Quantize {
  Type type = Type::f32;
  bool gelu = false;  ///< of gelu(x), which is rounded to `type` first
  const void* x = nullptr;
  std::int64_t count = 0;
  std::uint8_t* values = nullptr;    ///< [count] out
  float* scale = nullptr;            ///< one, out
  std::uint32_t* largest = nullptr;  ///< [kQuantizeParts] scratch; or [given], which are read
  int given = 0;                     ///< largest magnitudes that are known: of x and of others
};

/// Returns a cudaError_t: 0, or what is wrong with the launch; 1 (invalid value) for a count below
/// zero or beyond 2^38, or a `given` below zero; 801 (not supported) on a GPU below compute
/// capability 9.0, as there is no code for 8.9, the first that has E4M3. Pointers need the
/// alignment of an element; where x and values are aligned to 16 bytes, memory is read and written
/// 16 bytes at a time. A count of zero writes a scale and no value.
int quantize(const Quantize& call, CUstream_st* stream);

/// The first launch alone: quantize_parts(count) words, the largest magnitudes of parts of x. Their
/// bits are the magnitude's as a float.
int largest_magnitudes(Type type, const void* x, std::int64_t count, std::uint32_t* largest,
                       CUstream_st* stream);
int quantize_parts(std::int64_t count);

}  // namespace vfm::kernels
