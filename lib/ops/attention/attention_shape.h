// What a plan of attention on the GPU is built for, and the lists that describe a pack to it: host
// logic that needs no GPU.
//
// A plan takes time to build, so packs share one where they can: the longest sample is rounded up,
// and plans are for numbers of samples that are powers of two. Where cuDNN takes samples of length
// zero a pack is filled up with them; elsewhere it is cut into parts, one call each. The lengths,
// and where each sample begins, are arrays that the kernels read.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ops/attention/attention_kernels.h"

namespace vfm::ops {

/// Packs of equal shapes share their plans.
struct AttentionShape {
  std::int64_t samples = 0;                      ///< rounded up, if they are filled up
  std::int64_t most_queries = 0, most_keys = 0;  ///< of a sample, rounded up
  int heads = 0, key_heads = 0, head_dim = 0;
  std::int64_t q_stride = 0, kv_stride = 0;  ///< elements from row to row
  bool causal = false;                       ///< query i sees keys 0 to i
  float scale = 0;                           ///< of the scores
  auto operator<=>(const AttentionShape&) const = default;
};

AttentionShape attention_shape(const AttentionArgs& args, bool fill_up);
/// Whether there is a sample without queries or keys in the pack, or among those that fill it up.
bool has_empty_samples(const AttentionArgs& args, const AttentionShape& shape);

/// "4 samples of 8192 queries and 512 keys, 32 heads of 128, 8 key heads, causal", for messages.
std::string text_of(const AttentionShape& shape);

/// The next power of two.
std::int64_t round_up_samples(std::int64_t samples);
/// The next multiple of an eighth of the power of two that is not above `rows`, but of 128 at
/// least: beyond 1024 rows no more than an eighth is added, and there are eight shapes to a
/// doubling.
std::int64_t round_up_rows(std::int64_t rows);

/// Samples of a pack that one call takes, and the plan that it runs.
struct AttentionPart {
  AttentionShape shape;  ///< rows as in the whole pack, so that there are few
  std::int64_t first = 0, count = 0;
  /// Where its samples begin and the last one ends, of those of the pack.
  std::span<const std::int64_t> starts(const std::int64_t* of_pack) const {
    return {of_pack + first, static_cast<std::size_t>(count) + 1};
  }
};
/// The whole pack if it is filled up; else parts of 2^n samples, in order, the largest first.
std::vector<AttentionPart> attention_parts(const AttentionArgs& args, bool fill_up);

/// Lengths of the samples, with zeros up to `samples`. `starts` has an element more than there are
/// samples: the first row of each, and the end.
std::vector<std::int32_t> padded_lengths(std::span<const std::int64_t> starts,
                                         std::int64_t samples);
/// samples + 1 offsets: where each sample begins, counted in elements, if a row has `stride` of
/// them. Samples that fill up begin, and end, at the end.
std::vector<std::int64_t> ragged_offsets(std::span<const std::int64_t> starts, std::int64_t samples,
                                         std::int64_t stride);

}  // namespace vfm::ops
