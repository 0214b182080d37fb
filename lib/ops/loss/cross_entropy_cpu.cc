// SPDX-License-Identifier: Apache-2.0
#include "ops/cpu/elementary.h"
#include "ops/loss/cross_entropy_kernels.h"

namespace vfm::ops::VFM_ISA {
namespace {

// Natural logarithm, in a file that may not use the library's.
VFM_INLINE float log_of(float x) {
  return __builtin_logf(x);
}

void token_loss(const CrossEntropyArgs& a, std::int64_t token) {
  float* const row = a.logits + token * a.vocabulary;
  const std::int32_t target = a.targets[token];
  if (target < 0) {
    a.losses[token] = 0;
    if (a.scale != 0)
      for (std::int64_t v = 0; v < a.vocabulary; ++v)
        row[v] = 0;
    return;
  }
  float largest = row[0];
#pragma omp simd reduction(max : largest)
  for (std::int64_t v = 0; v < a.vocabulary; ++v)
    largest = row[v] > largest ? row[v] : largest;
  const float sum = sum_lanes(a.vocabulary, [&](auto lanes, std::int64_t v) {
    if constexpr (sizeof(lanes) == sizeof(float))
      return exp_f(row[v] - largest);
    else
      return exp_of_negative(load_as<Lanes>(row + v) - largest);
  });
  const float lse = largest + log_of(sum), of_target = row[target];
  a.losses[token] = lse - of_target + a.z_loss * lse * lse;
  if (a.scale == 0) return;
  const float factor = a.scale * (1.f + 2.f * a.z_loss * lse);
#pragma omp simd
  for (std::int64_t v = 0; v < a.vocabulary; ++v)
    row[v] = factor * exp_f(row[v] - lse);
  row[target] -= a.scale;
}

}  // namespace

void cross_entropy(const CrossEntropyArgs& args) {
#pragma omp parallel for schedule(static) if (args.tokens * args.vocabulary > 16384)
  for (std::int64_t token = 0; token < args.tokens; ++token)
    token_loss(args, token);
}

}  // namespace vfm::ops::VFM_ISA
