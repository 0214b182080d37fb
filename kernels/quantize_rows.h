// A matrix as numbers of 8 bits with a scale for each row: the CUDA version of
// lib/ops/matmul/quantize_rows.h, to the bit. E4M3 is made and read with whole numbers, so there is
// no need for a GPU that has it.
// Thread-safety: launches on the given stream; keeps nothing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "type.h"

struct CUstream_st;  // cudaStream_t

namespace vfm::kernels {

struct QuantizeRows {
  Type type = Type::f32;  ///< of x
  bool e4m3 = false;      ///< the codes: E4M3; else signed numbers
  void* x = nullptr;      ///< [rows, columns]; only dequantize_rows() writes it
  std::int64_t rows = 0, columns = 0;
  std::uint8_t* values = nullptr;    ///< [rows, columns]
  float* scales = nullptr;           ///< [rows]
  std::uint32_t* largest = nullptr;  ///< [parts, rows] bits of largest magnitudes
  std::int64_t parts = 1;
};

/// Writes `largest`, of one part; reads it and writes values and scales; reads these and writes x.
/// Return a cudaError_t: 0, or what is wrong with the launch; 1 (invalid value) for sizes below
/// zero, or more than 2^31 - 1 rows. Where arrays are aligned to 16 bytes and rows are multiples of
/// 16 elements, memory is read and written 16 bytes at a time.
int largest_of_rows(const QuantizeRows& call, CUstream_st* stream);
int quantize_rows(const QuantizeRows& call, CUstream_st* stream);
int dequantize_rows(const QuantizeRows& call, CUstream_st* stream);

}  // namespace vfm::kernels
