// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/attention_fp8.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "base/float8.h"
#include "base/format.h"
#include "ops/attention/attention_choice.h"
#include "ops/attention/attention_fp8_cudnn_cuda.h"
#include "ops/attention/attention_fp8_graph.h"
#include "ops/attention/attention_fp8_kernels.h"
#include "ops/attention/attention_kernels.h"
#include "ops/matmul/fp8_scale.h"
#include "ops/run.h"

namespace vfm::ops {
namespace {

std::int64_t total(const std::vector<std::int64_t>& lengths, const char* what) {
  for (const std::int64_t n : lengths)
    if (n < 0) fail("attention: a sample of {} {}", n, what);
  return std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
}

void check_fp8_rows(const Tensor& x, const std::vector<std::int64_t>& lengths, const char* what,
                    std::int64_t width) {
  const std::int64_t rows = total(lengths, what);
  if (x.dtype() != DType::f8e4m3 || x.shape() != Shape{rows, width})
    fail("attention in FP8: {} {} does not fit a pack of {} {}, {} wide, in {}",
         dtype_name(x.dtype()), to_string(x.shape()), rows, what, width, dtype_name(DType::f8e4m3));
}

void check_fp8_pack(const AttentionPack& pack) {
  if (pack.heads <= 0 || pack.key_heads <= 0 || pack.heads % pack.key_heads)
    fail("attention: {} heads cannot share {} key heads", pack.heads, pack.key_heads);
  if (const std::string why = why_no_fp8_attention(pack.head_dim); !why.empty()) fail("{}", why);
  if (pack.causal) fail("attention in FP8 is not causal");
  if (pack.query_lengths.size() != pack.key_lengths.size())
    fail("attention: {} query lengths, {} key lengths", pack.query_lengths.size(),
         pack.key_lengths.size());
}

void check_largest(const Tensor& largest, Device device) {
  if (largest.dtype() != DType::i32 || largest.shape() != Shape{3} || largest.device() != device)
    fail("heads in FP8: the largest magnitudes of three kinds are {} {} on {}",
         dtype_name(largest.dtype()), to_string(largest.shape()), device_name(largest.device()));
}

/// Of what is compared at a shape's first call on a GPU: heads and result in bf16.
std::size_t first_room(const Fp8AttentionCall& call, const AttentionPack& pack) {
  const bool self = call.q.id() == call.kv.id();
  const std::int64_t elements =
      call.q.elements() + (self ? 0 : call.kv.elements()) + call.codes.elements();
  const std::string what = vfm::format("attention in FP8 of {} rows over {}, {} heads",
                                       call.q.size(0), call.kv.size(0), pack.heads);
  return first_on_meta(what) ? static_cast<std::size_t>(2 * elements) : 0;
}

bool makes_bf16(Device device) {
  if constexpr (kHaveCuda)
    if (device == Device::cuda) return cudnn_fp8_writes_bf16();
  return false;
}

/// `rounded` as in self_attention_codes().
Tensor attend_codes(Fp8AttentionCall call, const AttentionPack& pack, bool rounded) {
  const Device device = call.q.device();
  check_largest(call.largest, device);
  const Shape shape{call.q.size(0), std::int64_t{pack.heads} * pack.head_dim};
  const HeadKinds values{.values = pack.heads, .head_dim = pack.head_dim};
  call.codes = Tensor(shape, DType::f8e4m3, device);
  if (makes_bf16(device)) {
    call.out = Tensor(shape, DType::bf16, device);
    rounded = false;
  }
  Fp8AttentionResult result = Fp8AttentionResult::codes;
  if (shape[0] > 0) {
    const Touching tensors(call.q, call.q.id() == call.kv.id() ? Tensor() : call.kv, call.codes);
    result = VFM_ASK(Fp8AttentionResult::codes,
                     tensors.kind(WorkKind::attention, DType::f8e4m3)
                         .gpu_scratch([&] { return first_room(call, pack); })
                         .products(attention_pairs(pack) * pack.heads, 2, pack.head_dim),
                     attention_fp8, call, pack);
  }
  if (result == Fp8AttentionResult::codes)
    return rounded ? call.codes : restore_heads(call.codes, values, call.largest);
  if (result == Fp8AttentionResult::refused) call.out = attention_over_codes(call, pack);
  return rounded ? quantize_heads(call.out, values, call.largest) : call.out;
}

HeadKinds kinds_of(const AttentionPack& pack) {
  return {pack.heads, pack.key_heads, pack.key_heads, pack.head_dim};
}

}  // namespace

std::string why_no_fp8_attention(int head_dim) {
  if (head_dim == 64 || head_dim == 128) return "";
  return vfm::format("attention in FP8 takes heads of 64 or 128, not {}", head_dim);
}

std::string why_no_fp8_attention(Device device) {
  if (device != Device::cuda) return "";
  if (attention_body() == AttentionBody::own) return "cuDNN was not chosen";
  if constexpr (kHaveCuda)
    if (why_no_gpu().empty()) return why_no_cudnn_fp8();
  return "";  // of a GPU that is planned for
}

Tensor self_attention_codes(const Tensor& codes, const Tensor& largest, const AttentionPack& pack,
                            bool rounded) {
  check_fp8_pack(pack);
  if (pack.query_lengths != pack.key_lengths)
    fail("attention in FP8: in self-attention there are as many keys as queries");
  check_fp8_rows(codes, pack.query_lengths, "queries",
                 std::int64_t{kinds_of(pack).heads()} * pack.head_dim);
  return attend_codes({codes, codes, std::int64_t{pack.heads} * pack.head_dim, largest, {}, {}},
                      pack, rounded);
}

Tensor cross_attention_codes(const Tensor& q, const Tensor& kv, const Tensor& largest,
                             const AttentionPack& pack) {
  check_fp8_pack(pack);
  check_fp8_rows(q, pack.query_lengths, "queries", std::int64_t{pack.heads} * pack.head_dim);
  check_fp8_rows(kv, pack.key_lengths, "keys", 2 * std::int64_t{pack.key_heads} * pack.head_dim);
  return attend_codes({q, kv, 0, largest, {}, {}}, pack, false);
}

Tensor self_attention_fp8(const Tape& tape, const Tensor& qkv, const AttentionPack& pack) {
  if (tape.recording())
    fail("attention in FP8 has no gradient: it is for inference, without recording");
  check_fp8_pack(pack);
  const Tensor largest = largest_of_kinds(qkv, kinds_of(pack));
  return self_attention_codes(quantize_heads(qkv, kinds_of(pack), largest), largest, pack);
}

Tensor attention_over_codes(const Fp8AttentionCall& call, const AttentionPack& pack) {
  Tape silent(false);
  if (call.q.id() == call.kv.id())
    return self_attention(silent, restore_heads(call.q, kinds_of(pack), call.largest), pack);
  const HeadKinds queries{.queries = pack.heads, .head_dim = pack.head_dim},
      keys{.keys = pack.key_heads, .values = pack.key_heads, .head_dim = pack.head_dim};
  return cross_attention(silent, restore_heads(call.q, queries, call.largest),
                         restore_heads(call.kv, keys, call.largest), pack);
}

namespace {

/// Heads of one kind of one sample: values of the codes, [rows, K].
std::vector<float> head_codes(const Tensor& x, std::int64_t first, std::int64_t rows,
                              std::int64_t column, std::int64_t width) {
  std::vector<float> codes(static_cast<std::size_t>(rows * width));
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t d = 0; d < width; ++d)
      codes[static_cast<std::size_t>(i * width + d)] =
          f8e4m3_to_float(x.data<std::uint8_t>()[(first + i) * x.size(1) + column + d]);
  return codes;
}

struct KeysOfHead {
  std::vector<float> keys, values;  // [rows, K]
  std::int64_t rows, width;
  float factor;  // from sums of codes to scores
};

// One query. `sums` becomes the result, in the scale of the values; zero without keys.
void attend_query(const float* q, const KeysOfHead& of, std::vector<float>& sums) {
  float top = -INFINITY, sum = 0;
  std::fill(sums.begin(), sums.end(), 0.f);
  std::array<float, kFp8KeyBlock> scores{};
  for (std::int64_t begin = 0; begin < of.rows; begin += kFp8KeyBlock) {
    const std::int64_t count = std::min(kFp8KeyBlock, of.rows - begin);
    float most = top;
    for (std::int64_t j = 0; j < count; ++j) {
      const float* key = of.keys.data() + (begin + j) * of.width;
      float score = 0;
#pragma omp simd reduction(+ : score)
      for (std::int64_t d = 0; d < of.width; ++d)
        score += q[d] * key[d];
      scores[static_cast<std::size_t>(j)] = score * of.factor;
      most = std::max(most, score * of.factor);
    }
    const float before = std::exp(top - most);
    sum *= before, top = most;
    for (float& one : sums)
      one *= before;
    for (std::int64_t j = 0; j < count; ++j) {
      const float weight = std::exp(scores[static_cast<std::size_t>(j)] - top);
      const float rounded = f8e4m3_to_float(float_to_f8e4m3(weight * kFp8WeightScale));
      sum += weight;
      const float* value = of.values.data() + (begin + j) * of.width;
#pragma omp simd
      for (std::int64_t d = 0; d < of.width; ++d)
        sums[static_cast<std::size_t>(d)] += rounded * value[d];
    }
  }
  const float by = of.rows > 0 ? 1 / (kFp8WeightScale * sum) : 0.f;
  for (float& one : sums)
    one *= by;
}

// What a call needs for each of its samples and heads.
struct Fp8Rows {
  const Fp8AttentionCall& call;
  const AttentionPack& pack;
  std::vector<std::int64_t> queries{0}, keys{0};  // where samples begin, and the end
  float factor;
};

void attend_head(const Fp8Rows& r, std::size_t sample, std::int64_t head) {
  const std::int64_t width = r.pack.head_dim, key_head = head / (r.pack.heads / r.pack.key_heads);
  const std::int64_t k0 = r.keys[sample], keys = r.keys[sample + 1] - k0, q0 = r.queries[sample];
  const std::int64_t k = r.call.k_column + key_head * width, v = k + r.pack.key_heads * width;
  const KeysOfHead of{head_codes(r.call.kv, k0, keys, k, width),
                      head_codes(r.call.kv, k0, keys, v, width), keys, width, r.factor};
  const std::int64_t queries = r.queries[sample + 1] - q0;
  const std::vector<float> q = head_codes(r.call.q, q0, queries, head * width, width);
  std::vector<float> sums(static_cast<std::size_t>(width));
  for (std::int64_t i = 0; i < queries; ++i) {
    attend_query(q.data() + i * width, of, sums);
    std::uint8_t* out =
        r.call.codes.data<std::uint8_t>() + ((q0 + i) * r.pack.heads + head) * width;
    for (const float one : sums)
      *out++ = float_to_f8e4m3(one);
  }
}

}  // namespace

Fp8AttentionResult cpu::attention_fp8(const Fp8AttentionCall& call, const AttentionPack& pack) {
  const auto* bits = call.largest.data<std::uint32_t>();
  Fp8Rows rows{call,
               pack,
               {0},
               {0},
               fp8_scale(bits[0]).scale * fp8_scale(bits[1]).scale /
                   std::sqrt(static_cast<float>(pack.head_dim))};
  for (std::size_t i = 0; i < pack.query_lengths.size(); ++i) {
    rows.queries.push_back(rows.queries.back() + pack.query_lengths[i]);
    rows.keys.push_back(rows.keys.back() + pack.key_lengths[i]);
  }
  const auto samples = static_cast<std::int64_t>(pack.query_lengths.size());
#pragma omp parallel for schedule(dynamic, 1)
  for (std::int64_t item = 0; item < samples * pack.heads; ++item)
    attend_head(rows, static_cast<std::size_t>(item / pack.heads), item % pack.heads);
  return Fp8AttentionResult::codes;
}

namespace {

void check_kinds(const Tensor& x, DType dtype, const HeadKinds& kinds) {
  if (kinds.head_dim <= 0 || kinds.head_dim % 16 != 0 || x.dtype() != dtype || x.dims() != 2 ||
      x.size(1) != std::int64_t{kinds.heads()} * kinds.head_dim)
    fail("heads in FP8: {} {} does not fit {} heads of {}", dtype_name(x.dtype()),
         to_string(x.shape()), kinds.heads(), kinds.head_dim);
}

}  // namespace

Tensor largest_of_kinds(const Tensor& x, const HeadKinds& kinds) {
  check_kinds(x, DType::bf16, kinds);
  const Tensor largest({3}, DType::i32, x.device());
  VFM_RUN(Touching(x), largest_of_kinds, x, kinds, largest);
  return largest;
}

Tensor largest_of_parts(const Tensor& largest) {
  if (largest.dtype() != DType::i32 || largest.dims() != 2 || largest.size(0) == 0 ||
      largest.size(1) != 3)
    fail("heads in FP8: {} {} are not the largest magnitudes of parts", dtype_name(largest.dtype()),
         to_string(largest.shape()));
  const Tensor all({3}, DType::i32, largest.device());
  VFM_RUN(Touching(largest, all), largest_of_parts, largest, all);
  return all;
}

Tensor quantize_heads(const Tensor& x, const HeadKinds& kinds, const Tensor& largest) {
  check_kinds(x, DType::bf16, kinds);
  check_largest(largest, x.device());
  const Tensor codes(x.shape(), DType::f8e4m3, x.device());
  VFM_RUN(Touching(x, codes), quantize_heads, x, kinds, largest, codes);
  return codes;
}

Tensor restore_heads(const Tensor& codes, const HeadKinds& kinds, const Tensor& largest) {
  check_kinds(codes, DType::f8e4m3, kinds);
  check_largest(largest, codes.device());
  const Tensor x(codes.shape(), DType::bf16, codes.device());
  VFM_RUN(Touching(codes, x), restore_heads, codes, kinds, largest, x);
  return x;
}

namespace {

/// act(place, kind) of every element, by rows.
template <class Act>
void for_each_element(const Tensor& x, const HeadKinds& kinds, const Act& act) {
  const std::int64_t columns = x.size(1), keys = std::int64_t{kinds.queries} * kinds.head_dim,
                     values = keys + std::int64_t{kinds.keys} * kinds.head_dim;
#pragma omp parallel for schedule(static)
  for (std::int64_t row = 0; row < x.size(0); ++row)
    for (std::int64_t i = 0; i < columns; ++i)
      act(row * columns + i, i < keys ? 0 : i < values ? 1 : 2);
}

}  // namespace

void cpu::largest_of_kinds(const Tensor& x, const HeadKinds& kinds, const Tensor& largest) {
  std::uint32_t queries = 0, keys = 0, values = 0;
  const auto* from = x.data<std::uint16_t>();
  const std::int64_t columns = x.size(1), first_key = std::int64_t{kinds.queries} * kinds.head_dim,
                     first_value = first_key + std::int64_t{kinds.keys} * kinds.head_dim;
#pragma omp parallel for schedule(static) reduction(max : queries, keys, values)
  for (std::int64_t row = 0; row < x.size(0); ++row)
    for (std::int64_t i = 0; i < columns; ++i) {
      const std::uint32_t bits = magnitude_bits(widened(from[row * columns + i]));
      std::uint32_t& most = i < first_key ? queries : i < first_value ? keys : values;
      most = std::max(most, bits);
    }
  const std::uint32_t found[3] = {queries, keys, values};
  std::memcpy(largest.raw(), found, sizeof found);
}

void cpu::largest_of_parts(const Tensor& largest, const Tensor& all) {
  const auto* from = largest.data<std::uint32_t>();
  auto* to = all.data<std::uint32_t>();
  std::fill(to, to + 3, 0u);
  for (std::int64_t i = 0; i < largest.elements(); ++i)
    to[i % 3] = std::max(to[i % 3], from[i]);
}

void cpu::quantize_heads(const Tensor& x, const HeadKinds& kinds, const Tensor& largest,
                         const Tensor& codes) {
  const auto* from = x.data<std::uint16_t>();
  const auto* bits = largest.data<std::uint32_t>();
  auto* to = codes.data<std::uint8_t>();
  const float by[3] = {fp8_scale(bits[0]).inverse, fp8_scale(bits[1]).inverse,
                       fp8_scale(bits[2]).inverse};
  for_each_element(x, kinds, [&](std::int64_t at, int kind) {
    to[at] = float_to_f8e4m3(widened(from[at]) * by[kind]);
  });
}

void cpu::restore_heads(const Tensor& codes, const HeadKinds& kinds, const Tensor& largest,
                        const Tensor& x) {
  const auto* from = codes.data<std::uint8_t>();
  const auto* bits = largest.data<std::uint32_t>();
  auto* to = x.data<std::uint16_t>();
  const float by[3] = {fp8_scale(bits[0]).scale, fp8_scale(bits[1]).scale,
                       fp8_scale(bits[2]).scale};
  for_each_element(codes, kinds, [&](std::int64_t at, int kind) {
    to[at] = float_to_bfloat16(by[kind] * f8e4m3_to_float(from[at]));
  });
}

}  // namespace vfm::ops
