// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/attention_shape.h"

#include <algorithm>
#include <bit>

#include "base/format.h"

namespace vfm::ops {
namespace {

std::int64_t longest(const std::int64_t* starts, std::int64_t samples) {
  std::int64_t most = 0;
  for (std::int64_t i = 0; i < samples; ++i)
    most = std::max(most, starts[i + 1] - starts[i]);
  return most;
}

std::uint64_t at_least_one(std::int64_t n) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(n, 1));
}

}  // namespace

AttentionShape attention_shape(const AttentionArgs& args, bool fill_up) {
  return {fill_up ? round_up_samples(args.samples) : args.samples,
          round_up_rows(longest(args.query_starts, args.samples)),
          round_up_rows(longest(args.key_starts, args.samples)),
          args.heads,
          args.key_heads,
          args.head_dim,
          args.q_stride,
          args.kv_stride,
          args.causal,
          args.scale};
}

bool has_empty_samples(const AttentionArgs& args, const AttentionShape& shape) {
  for (std::int64_t i = 0; i < args.samples; ++i)
    if (!attends(args, i)) return true;
  return shape.samples > args.samples;
}

bool attends(const AttentionArgs& args, std::int64_t sample) {
  return args.query_starts[sample] < args.query_starts[sample + 1] &&
         args.key_starts[sample] < args.key_starts[sample + 1];
}

std::string text_of(const AttentionShape& shape) {
  std::string text =
      vfm::format("{} samples of {} queries and {} keys, {} heads of {}", shape.samples,
                  shape.most_queries, shape.most_keys, shape.heads, shape.head_dim);
  if (shape.key_heads != shape.heads) text += vfm::format(", {} key heads", shape.key_heads);
  return shape.causal ? text + ", causal" : text;
}

std::int64_t round_up_samples(std::int64_t samples) {
  return static_cast<std::int64_t>(std::bit_ceil(at_least_one(samples)));
}

std::int64_t round_up_rows(std::int64_t rows) {
  const auto below = static_cast<std::int64_t>(std::bit_floor(at_least_one(rows)));
  const std::int64_t step = std::max<std::int64_t>(128, below / 8);
  return std::max<std::int64_t>(1, (rows + step - 1) / step) * step;
}

std::vector<AttentionPart> attention_parts(const AttentionArgs& args, bool fill_up) {
  const AttentionShape pack = attention_shape(args, fill_up);
  std::vector<AttentionPart> parts;
  for (std::int64_t first = 0, run = 0; first < args.samples;) {
    while (first + run < args.samples && attends(args, first + run))
      ++run;
    if (run == 0) {
      ++first;
      continue;
    }
    const std::int64_t count =
        fill_up ? run : static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(run)));
    parts.push_back({pack, first, count});
    parts.back().shape.samples = fill_up ? round_up_samples(count) : count;
    first += count, run -= count;
  }
  return parts;
}

std::vector<std::int32_t> padded_lengths(std::span<const std::int64_t> starts,
                                         std::int64_t samples) {
  std::vector<std::int32_t> lengths(static_cast<std::size_t>(samples), 0);
  for (std::size_t i = 0; i + 1 < starts.size(); ++i)
    lengths[i] = static_cast<std::int32_t>(starts[i + 1] - starts[i]);
  return lengths;
}

std::vector<std::int64_t> ragged_offsets(std::span<const std::int64_t> starts, std::int64_t samples,
                                         std::int64_t stride) {
  std::vector<std::int64_t> offsets(static_cast<std::size_t>(samples) + 1, starts.back() * stride);
  for (std::size_t i = 0; i < starts.size(); ++i)
    offsets[i] = starts[i] * stride;
  return offsets;
}

}  // namespace vfm::ops
