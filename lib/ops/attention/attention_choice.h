// Chooses the CUDA body of attention: our own kernels or cuDNN's.
//
// Our kernels are deterministic and support every case. cuDNN's need a Hopper or later GPU, bf16
// and head dims of 64 or 128; their backward pass is not deterministic. The choice is the same for
// all keys and for parts of them (partial_attention.h). It does not affect the CPU, which has one
// body.
// Thread-safety: set before the first op, from one thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace vfm::ops {

enum class AttentionBody {
  automatic,  ///< cuDNN if it can and its results match our own kernels'; else our own
  own,
  cudnn,  ///< throws Error if cuDNN cannot
};

/// Parses "auto", "own" or "cudnn". Throws Error{usage} for anything else.
AttentionBody parse_attention_body(std::string_view name);

/// `automatic` at the start of the process.
void set_attention_body(AttentionBody body);
AttentionBody attention_body();

/// The properties on which the choice depends. `query_starts` and `key_starts` hold the first row
/// of each sample and then the end: one element more than there are samples.
struct AttentionRequest {
  bool bf16 = false;
  bool causal = false;
  bool deterministic = false;
  int head_dim = 0;
  bool aligned = false;  ///< rows and matrices begin at multiples of 16 bytes
  std::span<const std::int64_t> query_starts, key_starts;
};

/// Returns why cuDNN cannot compute the request on any machine. Empty if it can. The text has no
/// numbers of the pack, as it is logged once.
std::string why_not_cudnn(const AttentionRequest& request);

struct AttentionArgs;  // attention_kernels.h
/// The same for the arguments of a call.
std::string why_not_cudnn(const AttentionArgs& args);

}  // namespace vfm::ops
