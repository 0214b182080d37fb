// Forward of attention with E4M3 products, for inference: softmax(scale q k^T) v over a pack, as
// attention.h has it, with q, k, v and the probabilities rounded to 8 bits (lib/base/float8.h).
//
// Queries, keys and values have a scale for each head of each sample (common/fp8.cuh): so what a
// sample gets does not depend on its neighbours in the pack, and a head with large values costs the
// others nothing. A finer cut would gain little, as E4M3 has an exponent of its own: the error is
// that of 3 bits of mantissa, not of the range.
//
// A probability is 2^(8 + x - m), with the score as a power of two x and m the whole number nearest
// to the largest so far, which E4M3 resolves down to 2^-16 of the largest. Beside another largest
// score it is another power of two of itself, so it is rounded alike whatever keys were seen
// before: on all devices, and in parts of the keys. They are divided by the sum of the rounded
// ones, so that the weights of a query sum to one, and what all probabilities' rounding has in
// common drops out. Sums are f32.
//
// The products are mma.sync's, which Hopper computes as products of f16 that it widens E4M3 to:
// half the bytes are read, but no product is faster than with bf16 (only wgmma's are).
//
// Three kinds of kernels: the largest magnitudes, where they are not given; the E4M3 copies, of
// values transposed, since the product wants rows of one value of consecutive keys; and the
// products. Source: Shah et al., "FlashAttention-3" (2024), for 8-bit attention by blocks. Shape
// letters: S queries of the pack, L keys of the pack, H heads, G key/value heads, K head dim, R
// samples. Thread-safety: launches on the given stream; keeps nothing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "attention.h"

namespace vfm::kernels {

struct AttentionFp8 {
  /// bf16, head dim 64 or 128, aligned as tensor cores want it; key_items are needed. log_sum_exp
  /// may be null: then nobody wants it. Nothing of backward is used.
  Attention call;
  /// Bits of the largest |q|, |k| and |v| that scales follow from, [R, H + 2 G]; null: of q, k, v.
  const std::uint32_t* largest = nullptr;
  std::int64_t keys = 0;     ///< L
  std::int64_t samples = 0;  ///< R
  void* room = nullptr;      ///< attention_fp8_room() bytes of scratch, aligned to 16
};

/// Bytes of scratch: (H S + 2 G L) K and a little. Host code.
std::int64_t attention_fp8_room(const AttentionFp8& call);

/// Returns a cudaError_t: 0, or what is wrong with the launch; 1 (invalid value) for a type, head
/// dim or alignment that it does not take; 801 (not supported) on a GPU below compute capability
/// 9.0, as there is no code for 8.9, the first that has E4M3.
///
/// NaN or infinity anywhere in a head of a sample makes that head's output for all of the sample
/// NaN. A query that sees no key gets zero.
int attention_fp8_forward(const AttentionFp8& call, CUstream_st* stream);

}  // namespace vfm::kernels
