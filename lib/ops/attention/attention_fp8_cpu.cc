// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <vector>

#include "ops/attention/attention_fp8_kernels.h"
#include "ops/matmul/fp8_scale.h"

namespace vfm::ops {
namespace {

constexpr float kLog2E = 1.4426950408889634f, kLn2 = 0.6931471805599453f;
constexpr float kWeightBits = 8;  // a weight of one is 2^8

// A head of a sample: what the codes are, as floats, [rows, K]; times scale it is what was there.
struct Head {
  std::vector<float> codes;
  float scale;
};

// `given`: the bits of the largest magnitude; null: that of the rows is looked for.
Head read_head(const void* from, std::int64_t first, std::int64_t rows, std::int64_t stride,
               std::int64_t column, std::int64_t width, const std::uint32_t* given) {
  const auto* x = static_cast<const std::uint16_t*>(from) + first * stride + column;
  std::uint32_t largest = given != nullptr ? *given : 0;
  for (std::int64_t i = 0; given == nullptr && i < rows; ++i)
    for (std::int64_t d = 0; d < width; ++d)
      largest = std::max(largest, magnitude_bits(widened(x[i * stride + d])));
  const Fp8Scale by = fp8_scale(largest);
  Head head{std::vector<float>(static_cast<std::size_t>(rows * width)), by.scale};
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t d = 0; d < width; ++d)
      head.codes[static_cast<std::size_t>(i * width + d)] =
          f8e4m3_to_float(float_to_f8e4m3(widened(x[i * stride + d]) * by.inverse));
  return head;
}

// One query over `seen` keys. `factor` turns sums of codes into powers of two; `weights` is room
// for a number a key, `sums` becomes the result. Returns the log-sum-exp, zero of no key.
float attend(const float* q, const Head& k, const Head& v, std::int64_t seen, std::int64_t width,
             float factor, std::vector<float>& weights, std::vector<float>& sums) {
  float top = -1e30f, sum = 0;
  for (std::int64_t j = 0; j < seen; ++j) {
    const float* key = k.codes.data() + j * width;
    float score = 0;
#pragma omp simd reduction(+ : score)
    for (std::int64_t d = 0; d < width; ++d)
      score += q[d] * key[d];
    weights[static_cast<std::size_t>(j)] = score;
    top = std::max(top, score);
  }
  const float base = std::rint(top * factor);
  std::fill(sums.begin(), sums.end(), 0.f);
  for (std::int64_t j = 0; j < seen; ++j) {
    const float power = weights[static_cast<std::size_t>(j)] * factor - base + kWeightBits;
    const float weight = f8e4m3_to_float(float_to_f8e4m3(std::exp2(power)));
    sum += weight;
    const float* value = v.codes.data() + j * width;
#pragma omp simd
    for (std::int64_t d = 0; d < width; ++d)
      sums[static_cast<std::size_t>(d)] += weight * value[d];
  }
  const float by = sum != 0 ? v.scale / sum : 0.f;  // a NaN must come through
  for (float& one : sums)
    one *= by;
  return sum != 0 ? (base - kWeightBits) * kLn2 + std::log(sum) : 0.f;
}

void attend_head(const AttentionArgs& a, std::int64_t sample, std::int64_t head) {
  const std::int64_t q0 = a.query_starts[sample], queries = a.query_starts[sample + 1] - q0;
  const std::int64_t k0 = a.key_starts[sample], keys = a.key_starts[sample + 1] - k0;
  const std::int64_t width = a.head_dim, key_head = head / (a.heads / a.key_heads);
  const std::int64_t key_column = key_head * width;
  const std::uint32_t* const known =
      a.largest != nullptr ? a.largest + sample * (a.heads + 2 * a.key_heads) : nullptr;
  const auto given = [known](std::int64_t slot) { return known != nullptr ? known + slot : known; };
  const Head q = read_head(a.q, q0, queries, a.q_stride, head * width, width, given(head));
  const Head k =
      read_head(a.k, k0, keys, a.kv_stride, key_column, width, given(a.heads + key_head));
  const Head v = read_head(a.v, k0, keys, a.kv_stride, key_column, width,
                           given(a.heads + a.key_heads + key_head));
  const float factor = a.scale * kLog2E * q.scale * k.scale;
  std::vector<float> weights(static_cast<std::size_t>(keys)), sums(static_cast<std::size_t>(width));
  for (std::int64_t i = 0; i < queries; ++i) {
    const std::int64_t seen = a.causal ? std::min(keys, i + 1 + keys - queries) : keys;
    const float log_sum_exp =
        attend(q.codes.data() + i * width, k, v, seen, width, factor, weights, sums);
    const std::int64_t at = ((q0 + i) * a.heads + head) * width;
    for (std::int64_t d = 0; d < width; ++d)
      if (a.wide)
        static_cast<float*>(a.out)[at + d] = sums[static_cast<std::size_t>(d)];
      else
        static_cast<std::uint16_t*>(a.out)[at + d] =
            float_to_bfloat16(sums[static_cast<std::size_t>(d)]);
    if (a.log_sum_exp != nullptr)
      a.log_sum_exp[head * a.query_starts[a.samples] + q0 + i] = log_sum_exp;
  }
}

}  // namespace

void cpu::attention_fp8_forward(const AttentionArgs& args, const AttentionPack&) {
#pragma omp parallel for schedule(dynamic, 1)
  for (std::int64_t item = 0; item < args.samples * args.heads; ++item)
    attend_head(args, item / args.heads, item % args.heads);
}

}  // namespace vfm::ops
