// Forward attention with E4M3 products, for inference: softmax(scale q k^T) v over a pack as in
// attention.h, with q, k, v and the probabilities rounded to 8 bits (lib/base/float8.h).
//
// Queries, keys and values have a scale for each head of each sample (common/fp8.cuh). A sample's
// result therefore does not depend on the other samples of the pack, and a head with large values
// does not affect other heads. Finer scales would gain little: E4M3 has an exponent for each
// element, so the error is that of 3 bits of mantissa, not of the range.
//
// A probability is 2^(8 + x - m), with 2^x = e^score and m the largest x so far rounded to a whole
// number. E4M3 resolves it down to 2^-16 of the largest. With a different m, all probabilities
// change by the same power of two, so they are rounded alike on all devices and in parts of the
// keys. They are divided by the sum of the rounded ones. The weights of a query then sum to one,
// and a rounding error common to all probabilities cancels. Sums are f32.
//
// The products are mma.sync's. Hopper widens their E4M3 operands to f16 and multiplies in f16, so
// half the bytes are read, but products are not faster than in bf16 (only wgmma's are).
//
// Three kinds of kernels compute the largest magnitudes, unless given; the E4M3 copies; and the
// products. The copy of the values is transposed, as the product needs consecutive keys of a column
// in a row.
// Source: Shah et al., "FlashAttention-3" (2024), for 8-bit attention by blocks.
// Shape letters: S queries of the pack, L keys of the pack, H heads, G key/value heads, K head dim,
// R samples.
// Thread-safety: launches on the given stream; keeps no state.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "attention.h"

namespace vfm::kernels {

struct AttentionFp8 {
  /// bf16, head dim 64 or 128, aligned for tensor cores, with key_items. log_sum_exp may be null if
  /// not wanted. Fields for backward are ignored.
  Attention call;
  /// Bits of the largest |q|, |k| and |v|, from which the scales follow, [R, H + 2 G]. Null: use
  /// the largest of q, k and v.
  const std::uint32_t* largest = nullptr;
  std::int64_t keys = 0;     ///< L
  std::int64_t samples = 0;  ///< R
  void* room = nullptr;      ///< attention_fp8_room() bytes of scratch, aligned to 16
};

/// Returns the bytes of scratch: (H S + 2 G L) K and a little more. Host code.
std::int64_t attention_fp8_room(const AttentionFp8& call);

/// Returns a cudaError_t: 0 on success, the launch's error, 1 (invalid value) for an unsupported
/// type, head dim or alignment, or 801 (not supported) on a GPU below compute capability 9.0. (8.9,
/// the first with E4M3, has no code here.)
///
/// NaN or infinity anywhere in a head of a sample makes that head's output NaN for the whole
/// sample. A query that sees no key gets zero.
int attention_fp8_forward(const AttentionFp8& call, CUstream_st* stream);

}  // namespace vfm::kernels
