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

void check(const Tape& tape, const Tensor& qkv, const AttentionPack& pack) {
  if (tape.recording())
    fail("attention in FP8 has no gradient: it is for inference, without recording");
  if (pack.heads <= 0 || pack.key_heads <= 0 || pack.heads % pack.key_heads)
    fail("attention: {} heads cannot share {} key heads", pack.heads, pack.key_heads);
  if (const std::string why = why_no_fp8_attention(pack.head_dim); !why.empty()) fail("{}", why);
  std::int64_t rows = 0;
  for (const std::int64_t n : pack.query_lengths) {
    if (n < 0) fail("attention: a sample of {} queries", n);
    rows += n;
  }
  const std::int64_t width = (pack.heads + 2 * std::int64_t{pack.key_heads}) * pack.head_dim;
  if (pack.query_lengths != pack.key_lengths || qkv.dtype() != DType::bf16 ||
      qkv.shape() != Shape{rows, width})
    fail("attention in FP8: {} {} does not fit a pack of {} queries, {} wide, in bf16",
         dtype_name(qkv.dtype()), to_string(qkv.shape()), rows, width);
}

}  // namespace

std::string why_no_fp8_attention(int head_dim) {
  if (head_dim == 64 || head_dim == 128) return "";
  return format("attention in FP8 takes heads of 64 or 128, not {}", head_dim);
}

bool fp8_attention_pays(Device device) {
  return device != Device::cuda || attention_body() == AttentionBody::own || deterministic() ||
         !counts_as_cudnn();
}

Tensor self_attention_fp8(const Tape& tape, const Tensor& qkv, const AttentionPack& pack) {
  check(tape, qkv, pack);
  const std::int64_t rows = qkv.size(0), width = std::int64_t{pack.heads} * pack.head_dim;
  const std::int64_t key_width = std::int64_t{pack.key_heads} * pack.head_dim;
  const Tensor out({rows, width}, DType::bf16, qkv.device());
  if (rows == 0) return out;
  std::vector<std::int64_t> starts{0};
  for (const std::int64_t n : pack.query_lengths)
    starts.push_back(starts.back() + n);
  AttentionArgs args;
  args.type = DType::bf16;
  args.causal = pack.causal;
  args.heads = pack.heads;
  args.key_heads = pack.key_heads;
  args.head_dim = pack.head_dim;
  args.scale = 1.f / std::sqrt(static_cast<float>(pack.head_dim));
  args.samples = static_cast<std::int64_t>(pack.query_lengths.size());
  args.query_starts = args.key_starts = starts.data();
  args.q = qkv.raw();
  args.k = qkv.data<std::uint16_t>() + width;
  args.v = qkv.data<std::uint16_t>() + width + key_width;
  args.q_stride = args.kv_stride = qkv.size(1);
  args.out = out.raw();
  VFM_RUN(Touching(qkv, out)
              .kind(WorkKind::attention, DType::f8e4m3)
              .gpu_scratch([&] { return qkv.elements(); })  // in FP8
              .products(attention_pairs(pack) * pack.heads, 2, pack.head_dim),
          attention_fp8_forward, args, pack);
  return out;
}

}  // namespace vfm::ops
