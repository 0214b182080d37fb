// The kernels of attention in FP8, and of the codes that its heads have.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/attention_fp8.h"
#include "ops/kernel.h"

namespace vfm::ops {

/// One call. Keys and values begin at `k_column` of kv; for self-attention q and kv are one tensor.
struct Fp8AttentionCall {
  Tensor q, kv;  // codes
  std::int64_t k_column = 0;
  Tensor largest;  // [3]
  Tensor codes;    // the result, E4M3 [S, H K]
  Tensor out;      // the result in bf16, if the device makes that
};

/// Where the result is. `refused`: nowhere, cuDNN does not compute the call.
enum class Fp8AttentionResult { refused, codes, out };

/// The CPU has plain loops, slow, as a reference for the GPU.
VFM_KERNEL(Fp8AttentionResult, attention_fp8, const Fp8AttentionCall& call,
           const AttentionPack& pack)

// Codes of heads.

VFM_KERNEL(void, largest_of_kinds, const Tensor& x, const HeadKinds& kinds, const Tensor& largest)
VFM_KERNEL(void, largest_of_parts, const Tensor& largest, const Tensor& all)
VFM_KERNEL(void, quantize_heads, const Tensor& x, const HeadKinds& kinds, const Tensor& largest,
           const Tensor& codes)
VFM_KERNEL(void, restore_heads, const Tensor& codes, const HeadKinds& kinds, const Tensor& largest,
           const Tensor& x)

/// Attention in bf16 over the codes, restored.
Tensor attention_over_codes(const Fp8AttentionCall& call, const AttentionPack& pack);

}  // namespace vfm::ops
