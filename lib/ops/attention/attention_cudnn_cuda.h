// Attention with cuDNN: the second CUDA body of attention.h, for calls for which why_not_cudnn() of
// attention_choice.h returns an empty text.
//
// A plan is built once for each AttentionShape and direction, and kept. `log_sum_exp` of the
// arguments has the same values as with our own kernels, but in the order [S, H] instead of [H, S].
// The body that ran forward must therefore run backward, or forward must be repeated, or the order
// changed, as for parts of the keys. Samples without queries or without keys are not touched: their
// rows of results stay as they were.
// Thread-safety: one thread drives the GPU.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "ops/attention/attention_kernels.h"

namespace vfm::ops {

/// Whether a pack may be filled up with samples of length zero. cuDNN before 9.25 is known to give
/// NaN for them in some backward passes. Call only if why_no_cudnn() is empty.
bool cudnn_takes_empty_samples();

/// A pack's lengths and offsets in the GPU's memory, filled at first use.
struct CudnnPack;
std::shared_ptr<CudnnPack> cudnn_pack();

/// `pack` must belong to the starts of samples in `args`. `out` is bf16, of parts as well. Throw
/// Error if cuDNN has no engine for the shape or fails to run.
void attention_forward_cudnn(const AttentionArgs& args, CudnnPack& pack);
void attention_backward_cudnn(const AttentionArgs& args, CudnnPack& pack);

}  // namespace vfm::ops
