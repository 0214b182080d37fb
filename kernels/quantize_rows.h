// Quantises a matrix to 8 bits an element with a scale for each row: the CUDA version of
// lib/ops/matmul/quantize.h, with the same bits. E4M3 is read and written with integer
// arithmetic, so any GPU will do.
// Thread-safety: launches on the given stream; keeps no state.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "type.h"

struct CUstream_st;  // cudaStream_t

namespace vfm::kernels {

struct QuantizeRows {
  Type type = Type::f32;  ///< of x
  bool e4m3 = false;      ///< true: codes are E4M3; false: int8
  void* x = nullptr;      ///< [rows, columns]; only dequantize_rows() writes it
  std::int64_t rows = 0, columns = 0;
  std::uint8_t* values = nullptr;    ///< [rows, columns]
  float* scales = nullptr;           ///< [rows]
  std::uint32_t* largest = nullptr;  ///< [parts, rows] bits of largest magnitudes
  std::int64_t parts = 1;
};

/// largest_of_rows() writes `largest` with parts = 1. quantize_rows() reads `largest` and writes
/// values and scales. dequantize_rows() reads these and writes x. Return a cudaError_t: 0 on
/// success, the launch's error, or 1 (invalid value) for sizes below zero or more than 2^31 - 1
/// rows. If arrays are aligned to 16 bytes and rows are multiples of 16 elements, memory is read
/// and written 16 bytes at a time.
int largest_of_rows(const QuantizeRows& call, CUstream_st* stream);
int quantize_rows(const QuantizeRows& call, CUstream_st* stream);
int dequantize_rows(const QuantizeRows& call, CUstream_st* stream);

}  // namespace vfm::kernels
