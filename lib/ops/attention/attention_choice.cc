// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/attention_choice.h"

#include <atomic>

#include "base/error.h"

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
  if (request.query_starts.empty() || request.query_starts.back() == 0) return "the pack is empty";
  for (std::size_t i = 0; i + 1 < request.query_starts.size(); ++i) {
    const std::int64_t queries = request.query_starts[i + 1] - request.query_starts[i];
    const std::int64_t keys = request.key_starts[i + 1] - request.key_starts[i];
    // What it would write for such a sample is not documented; ours is zero.
    if ((queries == 0) != (keys == 0))
      return "a sample has queries and no keys, or keys and no queries";
    if (queries == 0 && !request.empty_samples)
      return "a sample is empty, which it takes from version 9.25 on";
    if (request.causal && queries != keys)
      return "a sample has other numbers of causal queries and of keys";
  }
  return "";
}

}  // namespace vfm::ops
