// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/attention_fp8.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/format.h"
#include "ops/attention/attention_choice.h"
#include "ops/attention/attention_fp8_kernels.h"
#include "ops/cudnn/cudnn_cuda.h"
#include "ops/determinism.h"
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

}  // namespace vfm::ops
