// Which of the two CUDA bodies of attention runs: our own kernels or cuDNN's.
//
// Our own are deterministic and take everything. cuDNN's are for Hopper and later GPUs, bf16 and
// head dims of 64 and 128; their backward pass is not deterministic. The CPU has one body, and none
// of this matters to it.
// Thread-safety: set before the first op, from one thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace vfm::ops {

enum class AttentionBody {
  automatic,  ///< cuDNN where it can, once it has given what our own kernels give; else our own
  own,
  cudnn,  ///< an Error where it cannot
};

/// "auto", "own", "cudnn"; throws Error{usage} for anything else.
AttentionBody parse_attention_body(std::string_view name);

/// automatic at the start.
void set_attention_body(AttentionBody body);
AttentionBody attention_body();

/// What the choice depends on. `query_starts` and `key_starts` have an element more than there are
/// samples: the first row of each, and the end.
struct AttentionRequest {
  bool bf16 = false;
  bool causal = false;
  bool deterministic = false;
  int head_dim = 0;
  bool aligned = false;        ///< rows and matrices begin at multiples of 16 bytes
  bool empty_samples = false;  ///< this version takes samples without queries and keys
  std::span<const std::int64_t> query_starts, key_starts;
};

/// Why cuDNN cannot do it, whatever the machine, or empty if it can. Without numbers: it is logged
/// once.
std::string why_not_cudnn(const AttentionRequest& request);

struct AttentionArgs;  // attention_kernels.h
/// The same of a call. `empty_samples` as in the request.
std::string why_not_cudnn(const AttentionArgs& args, bool empty_samples);

}  // namespace vfm::ops
