// The CUDA versions of the kernels of attention_cpu.h: our own kernels, or cuDNN's
// (attention_choice.h).
//
// With AttentionBody::automatic a shape's first call runs both, and cuDNN's stays only if the two
// differ by no more than rounding: |cudnn - own| <= 2 % of |own|, Euclidean norms, for the output
// and for each gradient. If they differ by more, or cuDNN cannot build the shape, a warning says so
// once and our own kernels run that shape from then on.
// Thread-safety: one thread drives the GPU.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "ops/attention/attention.h"
#include "ops/attention/attention_choice.h"
#include "ops/attention/attention_cpu.h"

namespace vfm::ops {

/// Throws Error for a head dimension that no kernel takes (above 256).
std::shared_ptr<const AttentionDeviceWork> attention_work_cuda(const AttentionPack& pack);

/// Of `args` the lists of work and the scratch are not used. Returns the body that ran, own or
/// cudnn: each has its own order of log_sum_exp, so backward has to be told. Throws Error where
/// cuDNN was asked for by name and cannot do it.
AttentionBody attention_forward_cuda(const AttentionArgs& args, const AttentionDeviceWork& work);
/// `forward` is what attention_forward_cuda returned for these arguments.
void attention_backward_cuda(const AttentionArgs& args, const AttentionDeviceWork& work,
                             AttentionBody forward);

/// attention_fp8.h's, by our own kernels. Of `args` the log-sum-exp is not used either.
void attention_fp8_forward_cuda(const AttentionArgs& args, const AttentionDeviceWork& work);

}  // namespace vfm::ops
