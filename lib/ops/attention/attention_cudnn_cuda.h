// Attention by cuDNN: the second CUDA body of attention.h, for what why_not_cudnn (in
// attention_choice.h) has nothing against.
//
// A plan is built once for an AttentionShape and direction, and kept. `log_sum_exp` of the
// arguments holds the values that our own kernels put there, but in cuDNN's order: [S, H], where
// ours is [H, S]. So the body that ran forward must run backward, or forward must be repeated.
// Thread-safety: one thread drives the GPU.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "ops/attention/attention_kernels.h"

namespace vfm::ops {

/// Whether a pack may have samples of length zero. Before 9.25 they are known to give NaN in the
/// backward pass, here and there. Only where why_no_cudnn() says nothing.
bool cudnn_takes_empty_samples();

/// A pack's lengths and offsets in the GPU's memory; filled when they are first needed.
struct CudnnPack;
std::shared_ptr<CudnnPack> cudnn_pack();

/// `pack` belongs to these starts of samples. Throw Error if cuDNN has no engine for the shape, or
/// cannot run.
void attention_forward_cudnn(const AttentionArgs& args, CudnnPack& pack);
void attention_backward_cudnn(const AttentionArgs& args, CudnnPack& pack);

}  // namespace vfm::ops
