// Quantises a tensor to E4M3, the 8-bit float of lib/base/float8.h, with one scale: the CUDA
// version of lib/ops/matmul/quantize.h.
//
//   scale = max(largest |x|, 2^-40) / 448, value = x / scale rounded to nearest, ties to even
//
// There are two launches. The first finds the largest magnitudes of parts of x. In the second, each
// block takes the largest of the parts and computes values. A maximum does not depend on order, so
// the bits are the same on every GPU and on the CPU. If x has NaN or infinity, the scale and all
// values are NaN, so that it is noticed; one scale cannot cover both infinity and the other values.
// With `gelu`, quantises gelu(x), bit for bit as after activation_forward() (elementwise.h). Both
// launches compute gelu(x) from x, and it is never stored.
// Thread-safety: launches on the given stream; keeps no state.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "type.h"

struct CUstream_st;  // cudaStream_t

namespace vfm::kernels {

/// The largest value of E4M3, and the smallest largest-magnitude of x that gets its own scale: the
/// scale and the product of two scales stay far from underflow.
inline constexpr float kFp8Largest = 448, kFp8SmallestRange = 0x1p-40f;
/// The most parts into which x is split.
inline constexpr int kQuantizeParts = 512;

struct Quantize {
  Type type = Type::f32;
  bool gelu = false;  ///< quantise gelu(x), rounded to `type` first
  const void* x = nullptr;
  std::int64_t count = 0;
  std::uint8_t* values = nullptr;    ///< [count] output
  float* scale = nullptr;            ///< one float, output
  std::uint32_t* largest = nullptr;  ///< [kQuantizeParts] scratch; input [given] if given
  int given = 0;                     ///< number of given magnitudes, of x and others
};

/// Returns a cudaError_t: 0 on success, the launch's error, 1 (invalid value) for a count below
/// zero or above 2^38 or a `given` below zero, or 801 (not supported) on a GPU below compute
/// capability 9.0. (8.9, the first with E4M3, has no code here.) Pointers need only the alignment
/// of an element. If x and values are aligned to 16 bytes, memory is read and written 16 bytes at a
/// time. A count of zero writes only a scale.
int quantize(const Quantize& call, CUstream_st* stream);

/// The first launch alone: writes quantize_parts(count) words, the bits of the largest magnitudes
/// of parts of x as floats.
int largest_magnitudes(Type type, const void* x, std::int64_t count, std::uint32_t* largest,
                       CUstream_st* stream);
int quantize_parts(std::int64_t count);

}  // namespace vfm::kernels
