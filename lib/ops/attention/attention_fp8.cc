// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/attention_fp8.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "base/float8.h"
#include "base/format.h"
#include "ops/attention/attention_choice.h"
#include "ops/attention/attention_fp8_kernels.h"
#include "ops/cudnn/cudnn_cuda.h"
#include "ops/determinism.h"
#include "ops/matmul/fp8_scale.h"
#include "ops/run.h"

namespace vfm::ops {
namespace {

struct Fp8Call {
  const Tensor &q, &kv;
  std::int64_t k_column = 0;    // of kv
  DType out = DType::bf16;      // or f32
  Tensor largest, log_sum_exp;  // or undefined
};

void check_fp8_heads(const AttentionPack& pack) {
  if (pack.heads <= 0 || pack.key_heads <= 0 || pack.heads % pack.key_heads)
    fail("attention: {} heads cannot share {} key heads", pack.heads, pack.key_heads);
  if (const std::string why = why_no_fp8_attention(pack.head_dim); !why.empty()) fail("{}", why);
}

/// Where the rows of each sample begin, and those of the last one end.
std::vector<std::int64_t> row_starts(const std::vector<std::int64_t>& lengths, const char* what) {
  std::vector<std::int64_t> starts{0};
  for (const std::int64_t n : lengths) {
    if (n < 0) fail("attention: a sample of {} {}", n, what);
    starts.push_back(starts.back() + n);
  }
  return starts;
}

void check_fp8_rows(const Tensor& x, const std::vector<std::int64_t>& lengths, const char* what,
                    std::int64_t width) {
  const std::int64_t rows = row_starts(lengths, what).back();
  if (x.dtype() != DType::bf16 || x.shape() != Shape{rows, width})
    fail("attention in FP8: {} {} does not fit a pack of {} {}, {} wide, in bf16",
         dtype_name(x.dtype()), to_string(x.shape()), rows, what, width);
}

Tensor run_fp8(const Fp8Call& call, const AttentionPack& pack) {
  const std::int64_t width = std::int64_t{pack.heads} * pack.head_dim;
  const Tensor out({call.q.size(0), width}, call.out, call.q.device());
  if (call.q.size(0) == 0) return out;
  const std::vector<std::int64_t> query_starts = row_starts(pack.query_lengths, "queries"),
                                  key_starts = row_starts(pack.key_lengths, "keys");
  AttentionArgs args;
  args.type = DType::bf16;
  args.causal = pack.causal;
  args.heads = pack.heads;
  args.key_heads = pack.key_heads;
  args.head_dim = pack.head_dim;
  args.scale = 1.f / std::sqrt(static_cast<float>(pack.head_dim));
  args.samples = static_cast<std::int64_t>(pack.query_lengths.size());
  args.query_starts = query_starts.data();
  args.key_starts = key_starts.data();
  args.q = call.q.raw();
  args.k = call.kv.data<std::uint16_t>() + call.k_column;
  args.v = call.kv.data<std::uint16_t>() + call.k_column + pack.key_heads * pack.head_dim;
  args.q_stride = call.q.size(1);
  args.kv_stride = call.kv.size(1);
  if (call.largest.defined()) args.largest = call.largest.data<std::uint32_t>();
  args.out = out.raw();
  args.wide = call.out == DType::f32;
  if (call.log_sum_exp.defined()) args.log_sum_exp = call.log_sum_exp.data<float>();
  const bool apart = call.q.id() != call.kv.id();
  VFM_RUN(Touching(call.q, apart ? call.kv : Tensor(), out)
              .kind(WorkKind::attention, DType::f8e4m3)
              .gpu_scratch([&] {  // in FP8
                return call.q.elements() + (apart ? call.kv.elements() : 0);
              })
              .products(attention_pairs(pack) * pack.heads, 2, pack.head_dim),
          attention_fp8_forward, args, pack);
  return out;
}

}  // namespace

std::string why_no_fp8_attention(int head_dim) {
  if (head_dim == 64 || head_dim == 128) return "";
  return vfm::format("attention in FP8 takes heads of 64 or 128, not {}", head_dim);
}

bool fp8_attention_pays(Device device) {
  return device != Device::cuda || attention_body() == AttentionBody::own || deterministic() ||
         !counts_as_cudnn();
}

Tensor self_attention_fp8(const Tape& tape, const Tensor& qkv, const AttentionPack& pack) {
  if (tape.recording())
    fail("attention in FP8 has no gradient: it is for inference, without recording");
  check_fp8_heads(pack);
  if (pack.query_lengths != pack.key_lengths)
    fail("attention in FP8: in self-attention there are as many keys as queries");
  check_fp8_rows(qkv, pack.query_lengths, "queries",
                 (pack.heads + 2 * std::int64_t{pack.key_heads}) * pack.head_dim);
  return run_fp8(
      {qkv, qkv, std::int64_t{pack.heads} * pack.head_dim, DType::bf16, Tensor(), Tensor()}, pack);
}

PartOfAttention attend_part_fp8(const Tensor& q, const Tensor& kv, const AttentionPack& pack,
                                const Tensor& largest, DType out) {
  check_fp8_heads(pack);
  const auto samples = static_cast<std::int64_t>(pack.query_lengths.size());
  if (pack.causal || pack.key_lengths.size() != pack.query_lengths.size())
    fail("attention in FP8: a part is not causal, and has a number of keys for each sample");
  check_fp8_rows(q, pack.query_lengths, "queries", std::int64_t{pack.heads} * pack.head_dim);
  check_fp8_rows(kv, pack.key_lengths, "keys", 2 * std::int64_t{pack.key_heads} * pack.head_dim);
  if (out != DType::bf16 && out != DType::f32)
    fail("attention in FP8: no result of {}", dtype_name(out));
  if (largest.dtype() != DType::i32 || largest.device() != q.device() ||
      largest.shape() != Shape{samples, pack.heads + 2 * std::int64_t{pack.key_heads}})
    fail("attention in FP8: {} {} are not the magnitudes of {} and twice {} heads in {} samples",
         dtype_name(largest.dtype()), to_string(largest.shape()), pack.heads, pack.key_heads,
         samples);
  PartOfAttention part;
  part.log_sum_exp = Tensor({pack.heads, q.size(0)}, DType::f32, q.device());
  part.out = run_fp8({q, kv, 0, out, largest, part.log_sum_exp}, pack);
  return part;
}

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

namespace {

/// Of a matrix of heads; how many there are.
std::int64_t heads_of(const Tensor& x, DType dtype, const HeadLayout& layout) {
  const std::int64_t rows =
      std::accumulate(layout.lengths.begin(), layout.lengths.end(), std::int64_t{0});
  if (x.dtype() != dtype || x.dims() != 2 || x.size(0) != rows || layout.head_dim <= 0 ||
      layout.head_dim % 16 != 0 || x.size(1) % layout.head_dim != 0)
    fail("heads in FP8: {} {} does not fit {} rows of heads of {}", dtype_name(x.dtype()),
         to_string(x.shape()), rows, layout.head_dim);
  return x.size(1) / layout.head_dim;
}

void check_largest(const Tensor& largest, std::int64_t heads, const HeadLayout& layout) {
  const auto samples = static_cast<std::int64_t>(layout.lengths.size());
  if (largest.dtype() != DType::i32 || largest.shape() != Shape{samples, heads})
    fail("heads in FP8: the largest magnitudes of {} heads in {} samples are {} {}", heads, samples,
         dtype_name(largest.dtype()), to_string(largest.shape()));
}

}  // namespace

Tensor largest_of_heads(const Tensor& x, const HeadLayout& layout) {
  const std::int64_t heads = heads_of(x, DType::bf16, layout);
  const Tensor largest({static_cast<std::int64_t>(layout.lengths.size()), heads}, DType::i32,
                       x.device());
  VFM_RUN(Touching(x), largest_of_heads, x, layout, largest);
  return largest;
}

Tensor largest_of_parts(const Tensor& largest, std::int64_t samples) {
  if (largest.dtype() != DType::i32 || largest.dims() != 2 || samples <= 0 ||
      largest.size(0) == 0 || largest.size(0) % samples != 0)
    fail("heads in FP8: {} {} are not the largest magnitudes of parts of {} samples",
         dtype_name(largest.dtype()), to_string(largest.shape()), samples);
  const Tensor all({samples, largest.size(1)}, DType::i32, largest.device());
  VFM_RUN(Touching(largest, all), largest_of_parts, largest, all);
  return all;
}

Tensor quantize_heads(const Tensor& x, const HeadLayout& layout, const Tensor& largest) {
  check_largest(largest, heads_of(x, DType::bf16, layout), layout);
  const Tensor codes(x.shape(), DType::f8e4m3, x.device());
  VFM_RUN(Touching(x, codes), quantize_heads, x, layout, largest, codes);
  return codes;
}

Tensor restore_heads(const Tensor& codes, const HeadLayout& layout, const Tensor& largest) {
  check_largest(largest, heads_of(codes, DType::f8e4m3, layout), layout);
  const Tensor x(codes.shape(), DType::bf16, codes.device());
  VFM_RUN(Touching(codes, x), restore_heads, codes, layout, largest, x);
  return x;
}

namespace {

/// head(sample, head, first, rows): for each head of each sample the place of its first element,
/// and how many rows it has, `stride` elements apart.
template <class Head>
void for_each_head(const HeadLayout& layout, std::int64_t heads, const Head& head) {
  const auto samples = static_cast<std::int64_t>(layout.lengths.size());
  std::vector<std::int64_t> starts{0};
  for (const std::int64_t rows : layout.lengths)
    starts.push_back(starts.back() + rows);
#pragma omp parallel for schedule(static)
  for (std::int64_t item = 0; item < samples * heads; ++item) {
    const auto sample = static_cast<std::size_t>(item / heads);
    head(static_cast<std::int64_t>(sample), item % heads,
         (starts[sample] * heads + item % heads) * layout.head_dim, layout.lengths[sample]);
  }
}

/// act(place, scale) of every element, in the scale of its head and sample.
template <class Act>
void for_each_element(const HeadLayout& layout, const Tensor& largest, const Act& act) {
  const std::int64_t heads = largest.size(1), stride = heads * layout.head_dim;
  const auto* bits = largest.data<std::uint32_t>();
  for_each_head(layout, heads,
                [&](std::int64_t sample, std::int64_t head, std::int64_t first, std::int64_t rows) {
                  const Fp8Scale scale = fp8_scale(bits[sample * heads + head]);
                  for (std::int64_t i = 0; i < rows; ++i)
                    for (std::int64_t d = 0; d < layout.head_dim; ++d)
                      act(first + i * stride + d, scale);
                });
}

}  // namespace

void cpu::largest_of_heads(const Tensor& x, const HeadLayout& layout, const Tensor& largest) {
  const std::int64_t heads = largest.size(1), stride = x.size(1);
  for_each_head(layout, heads,
                [&](std::int64_t sample, std::int64_t head, std::int64_t first, std::int64_t rows) {
                  std::uint32_t most = 0;
                  for (std::int64_t i = 0; i < rows; ++i)
                    for (std::int64_t d = 0; d < layout.head_dim; ++d)
                      most = std::max(
                          most,
                          magnitude_bits(widened(x.data<std::uint16_t>()[first + i * stride + d])));
                  largest.data<std::uint32_t>()[sample * heads + head] = most;
                });
}

void cpu::largest_of_parts(const Tensor& largest, const Tensor& all) {
  const auto* from = largest.data<std::uint32_t>();
  auto* to = all.data<std::uint32_t>();
  for (std::int64_t i = 0; i < all.elements(); ++i) {
    to[i] = 0;
    for (std::int64_t at = i; at < largest.elements(); at += all.elements())
      to[i] = std::max(to[i], from[at]);
  }
}

void cpu::quantize_heads(const Tensor& x, const HeadLayout& layout, const Tensor& largest,
                         const Tensor& codes) {
  const auto* from = x.data<std::uint16_t>();
  auto* to = codes.data<std::uint8_t>();
  for_each_element(layout, largest, [=](std::int64_t at, const Fp8Scale& by) {
    to[at] = float_to_f8e4m3(widened(from[at]) * by.inverse);
  });
}

void cpu::restore_heads(const Tensor& codes, const HeadLayout& layout, const Tensor& largest,
                        const Tensor& x) {
  const auto* from = codes.data<std::uint8_t>();
  auto* to = x.data<std::uint16_t>();
  for_each_element(layout, largest, [=](std::int64_t at, const Fp8Scale& by) {
    to[at] = float_to_bfloat16(by.scale * f8e4m3_to_float(from[at]));
  });
}

}  // namespace vfm::ops
