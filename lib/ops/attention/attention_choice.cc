// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/attention_choice.h"

#include <atomic>

#include "base/error.h"
#include "ops/attention/attention_kernels.h"
#include "ops/determinism.h"

namespace vfm::ops {
namespace {

std::atomic<AttentionBody> body_{AttentionBody::automatic};

}  // namespace

AttentionBody parse_attention_body(std::string_view name) {
  if (name == "auto") return AttentionBody::automatic;
  if (name == "own") return AttentionBody::own;
  if (name == "cudnn") return AttentionBody::cudnn;
  fail_usage("no attention '{}'; there are auto, own and cudnn", name);
}

void set_attention_body(AttentionBody body) {
  body_ = body;
}

AttentionBody attention_body() {
  return body_;
}

std::string why_not_cudnn(const AttentionRequest& request) {
  if (request.deterministic) return "its backward pass is not deterministic";
  if (!request.bf16) return "it takes bf16 only";
  if (request.head_dim != 64 && request.head_dim != 128)
    return vfm::format("it takes head dims of 64 and 128, not {}", request.head_dim);
  if (!request.aligned) return "it takes rows that are aligned to 16 bytes only";
  bool some = false;
  for (std::size_t i = 0; i + 1 < request.query_starts.size(); ++i) {
    const std::int64_t queries = request.query_starts[i + 1] - request.query_starts[i];
    const std::int64_t keys = request.key_starts[i + 1] - request.key_starts[i];
    some = some || (queries > 0 && keys > 0);
    if (request.causal && queries != keys)
      return "a sample has other numbers of causal queries and of keys";
  }
  return some ? "" : "no sample has queries and keys";
}

std::string why_not_cudnn(const AttentionArgs& args) {
  const auto samples = static_cast<std::size_t>(args.samples) + 1;
  AttentionRequest request;
  request.bf16 = args.type == DType::bf16;
  request.causal = args.causal;
  request.deterministic = deterministic();
  request.head_dim = args.head_dim;
  request.aligned = args.q_stride % 8 == 0 && args.kv_stride % 8 == 0;
  for (const void* matrix : {args.q, args.k, args.v, static_cast<const void*>(args.out)})
    request.aligned = request.aligned && reinterpret_cast<std::uintptr_t>(matrix) % 16 == 0;
  request.query_starts = {args.query_starts, samples};
  request.key_starts = {args.key_starts, samples};
  return why_not_cudnn(request);
}

}  // namespace vfm::ops
