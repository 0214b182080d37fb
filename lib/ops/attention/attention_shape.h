// The shape for which a plan of attention on the GPU is built, and the lists that describe a pack
// to the plan. Host code; needs no GPU.
//
// Building a plan takes time, so packs share plans: the length of the longest sample is rounded up,
// and the number of samples is a power of two. If cuDNN supports samples of length zero, a pack is
// filled up with such samples. Otherwise it is split into parts, with one call each. Samples
// without queries or without keys are in no part. Kernels read the lengths and starts of samples
// from arrays.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ops/attention/attention_kernels.h"

namespace vfm::ops {

/// Packs of equal shapes share a plan.
struct AttentionShape {
  std::int64_t samples = 0;                      ///< number of samples, rounded up if filled up
  std::int64_t most_queries = 0, most_keys = 0;  ///< of the longest sample, rounded up
  int heads = 0, key_heads = 0, head_dim = 0;
  std::int64_t q_stride = 0, kv_stride = 0;  ///< elements from row to row
  bool causal = false;                       ///< query i sees keys 0 to i
  float scale = 0;                           ///< factor on the scores
  auto operator<=>(const AttentionShape&) const = default;
};

AttentionShape attention_shape(const AttentionArgs& args, bool fill_up);
/// Whether a sample has no queries or keys, in the pack or among those that fill it up.
bool has_empty_samples(const AttentionArgs& args, const AttentionShape& shape);

/// Returns a text for messages: "4 samples of 8192 queries and 512 keys, 32 heads of 128, 8 key
/// heads, causal".
std::string text_of(const AttentionShape& shape);

/// Returns the next power of two.
std::int64_t round_up_samples(std::int64_t samples);
/// Rounds up to a multiple of an eighth of the largest power of two that is at most `rows`, but at
/// least of 128. Beyond 1024 rows this adds at most an eighth and gives eight shapes to a doubling.
std::int64_t round_up_rows(std::int64_t rows);

/// The samples of a pack that one call takes, and the shape of its plan.
struct AttentionPart {
  AttentionShape shape;  ///< most_queries, most_keys: of the whole pack
  std::int64_t first = 0, count = 0;
  /// Returns the starts of the part's samples and the end of the last sample, from those of the
  /// pack.
  std::span<const std::int64_t> starts(const std::int64_t* of_pack) const {
    return {of_pack + first, static_cast<std::size_t>(count) + 1};
  }
};
/// Whether the sample has queries and keys.
bool attends(const AttentionArgs& args, std::int64_t sample);
/// Returns the parts of the runs of samples that have queries and keys, in order: each run whole if
/// it is filled up, else parts of 2^n samples, the largest first.
std::vector<AttentionPart> attention_parts(const AttentionArgs& args, bool fill_up);

/// Returns the lengths of the samples, followed by zeros up to `samples` lengths. `starts` holds
/// the first row of each sample and then the end.
std::vector<std::int32_t> padded_lengths(std::span<const std::int64_t> starts,
                                         std::int64_t samples);
/// Returns the element offset of each sample and of the end, samples + 1 offsets, for rows of
/// `stride` elements. Samples that fill up the pack begin at the end.
std::vector<std::int64_t> ragged_offsets(std::span<const std::int64_t> starts, std::int64_t samples,
                                         std::int64_t stride);

}  // namespace vfm::ops
