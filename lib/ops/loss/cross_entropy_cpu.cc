// SPDX-License-Identifier: Apache-2.0
#include "ops/cpu/elementary.h"
#include "ops/cpu/row_loops.h"
#include "ops/loss/loss_kernels.h"

namespace vfm::ops::VFM_ISA {
namespace {

// Natural logarithm, in a file that may not use the library's.
VFM_INLINE float log_of(float x) {
  return __builtin_logf(x);
}

// Of a token, over the whole vocabulary or a share.
struct Known {
  float lse, of_target;
};

// The target's column; outside 0 to vocabulary - 1 it is another share's.
std::int64_t target_column(const CrossEntropyArgs& a, std::int64_t token) {
  return a.targets[token] - a.first;
}

bool is_here(const CrossEntropyArgs& a, std::int64_t column) {
  return column >= 0 && column < a.vocabulary;
}

Known known_here(const CrossEntropyArgs& a, std::int64_t token) {
  const float* const row = a.logits + token * a.vocabulary;
  float largest = row[0];
#pragma omp simd reduction(max : largest)
  for (std::int64_t v = 0; v < a.vocabulary; ++v)
    largest = row[v] > largest ? row[v] : largest;
  const float sum = sum_lanes(a.vocabulary, [&](auto lanes, std::int64_t v) {
    if constexpr (sizeof(lanes) == sizeof(float))
      return exp_f(row[v] - largest);
    else
      return exp_of_negative(load_as<Native>(row + v) - largest);
  });
  const std::int64_t target = target_column(a, token);
  return {largest + log_of(sum), is_here(a, target) ? row[target] : 0.f};
}

Known merged(const CrossEntropyArgs& a, std::int64_t token) {
  const auto part = [&](std::int64_t share) { return a.parts + 2 * (share * a.tokens + token); };
  float largest = part(0)[0];
  for (std::int64_t s = 1; s < a.shares; ++s)
    largest = part(s)[0] > largest ? part(s)[0] : largest;
  float sum = 0, of_target = 0;
  for (std::int64_t s = 0; s < a.shares; ++s) {
    sum += exp_f(part(s)[0] - largest);
    of_target += part(s)[1];
  }
  return {largest + log_of(sum), of_target};
}

void token_loss(const CrossEntropyArgs& a, std::int64_t token) {
  float* const row = a.logits + token * a.vocabulary;
  if (a.targets[token] < 0) {
    a.losses[token] = 0;
    if (a.scale != 0)
      for (std::int64_t v = 0; v < a.vocabulary; ++v)
        row[v] = 0;
    return;
  }
  const Known known = a.parts == nullptr ? known_here(a, token) : merged(a, token);
  const float lse = known.lse;
  a.losses[token] = lse - known.of_target + a.z_loss * lse * lse;
  if (a.scale == 0) return;
  const float factor = a.scale * (1.f + 2.f * a.z_loss * lse);
#pragma omp simd
  for (std::int64_t v = 0; v < a.vocabulary; ++v)
    row[v] = factor * exp_f(row[v] - lse);
  if (const std::int64_t target = target_column(a, token); is_here(a, target))
    row[target] -= a.scale;
}

}  // namespace

void cross_entropy_part(const CrossEntropyArgs& args) {
#pragma omp parallel for schedule(static) if (args.tokens * args.vocabulary > 16384)
  for (std::int64_t token = 0; token < args.tokens; ++token) {
    const Known known = args.targets[token] < 0 ? Known{0, 0} : known_here(args, token);
    args.part[2 * token] = known.lse;
    args.part[2 * token + 1] = known.of_target;
  }
}

void cross_entropy(const CrossEntropyArgs& args) {
#pragma omp parallel for schedule(static) if (args.tokens * args.vocabulary > 16384)
  for (std::int64_t token = 0; token < args.tokens; ++token)
    token_loss(args, token);
}

}  // namespace vfm::ops::VFM_ISA
