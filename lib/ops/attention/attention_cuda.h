// Shared by the CUDA versions of attention (attention_cuda.cc, attention_fp8_cuda.cc).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "kernels/attention.h"
#include "ops/attention/attention_cudnn_cuda.h"
#include "ops/attention/attention_kernels.h"
#include "tensor/tensor.h"

namespace vfm::ops {

struct AttentionDeviceWork {
  Tensor query_items, key_items;  // arrays of items, as bytes
  std::int64_t query_count = 0, key_count = 0;
  std::shared_ptr<CudnnPack> cudnn = cudnn_pack();
};

/// Returns the arguments for our own kernels.
kernels::Attention describe_attention(const AttentionArgs& args, const AttentionDeviceWork& work);

}  // namespace vfm::ops
