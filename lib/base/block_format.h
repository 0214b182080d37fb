// Blocks of numbers in GGUF files (io/gguf.h), as GGML defines them. Each block has its own scales.
//
//   Q8_0   32 numbers, 34 bytes: f16 d; 32 signed q
//          x = d q
//   Q4_K   256 numbers, 144 bytes: f16 d, f16 m; 12 bytes with 8 scales s and 8 offsets o of 6 bits
//          each; 128 bytes, each with two 4-bit q
//          x = d s q - m o, with one s and o for 32 numbers
//   Q5_K   256 numbers, 176 bytes: as Q4_K, with 32 bytes before the 4-bit q that have a fifth bit
//          for each
//   Q6_K   256 numbers, 210 bytes: 128 bytes, each with the lower 4 bits of two q; 64 bytes, each
//          with the upper 2 bits of four q; 16 signed scales s; f16 d
//          x = d s (q - 32), with one s for 16 numbers
//
// All products are exact in f32, and only the differences of Q4_K and Q5_K are rounded. So a number
// has the same f32 value on every device. Source: ggml's block_q8_0, block_q4_K, block_q5_K,
// block_q6_K and their dequantize_row functions. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace vfm {

enum class BlockFormat { q8_0, q4_k, q5_k, q6_k };

struct BlockLayout {
  std::string_view name;  ///< Dtype of a tensor in this format: "Q8_0".
  std::int64_t elements, bytes;
};

constexpr BlockLayout block_layout(BlockFormat format) {
  switch (format) {
    case BlockFormat::q8_0:
      return {"Q8_0", 32, 34};
    case BlockFormat::q4_k:
      return {"Q4_K", 256, 144};
    case BlockFormat::q5_k:
      return {"Q5_K", 256, 176};
    default:
      return {"Q6_K", 256, 210};
  }
}

/// Returns the format of this name, or nullopt for an unknown name.
constexpr std::optional<BlockFormat> block_format(std::string_view name) {
  for (const BlockFormat format :
       {BlockFormat::q8_0, BlockFormat::q4_k, BlockFormat::q5_k, BlockFormat::q6_k})
    if (block_layout(format).name == name) return format;
  return {};
}

}  // namespace vfm
