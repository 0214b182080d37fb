// The memory that the CUDA bodies of attention work in. They make it, and attention.cc makes it on
// Device::meta, to be counted (tensor/meta.h). What a plan of cuDNN needs beside this only cuDNN
// can say, on the GPU: it is not counted. Shape letters: S queries, L keys, H heads, G key heads, K
// head dim.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/attention_kernels.h"
#include "tensor/tensor.h"

namespace vfm::ops {

/// Of our own kernels' backward pass.
struct OwnBackwardRoom {
  OwnBackwardRoom(const AttentionArgs& args, Device device);
  Tensor row_sums;  ///< [H, S, 2] f32
};

/// Of cuDNN's backward pass.
struct CudnnBackwardRoom {
  CudnnBackwardRoom(const AttentionArgs& args, Device device);
  Tensor row_sums;            ///< [S and spare rows, H] f32
  Tensor dq_sum;              ///< f32, rows of all heads
  Tensor dk_heads, dv_heads;  ///< bf16; undefined where H is G
};

/// Results of forward that another body's are compared with, or that it needs again.
struct ForwardRoom {
  ForwardRoom(const AttentionArgs& args, Device device);
  Tensor out;          ///< [S, H K]
  Tensor log_sum_exp;  ///< [H, S] f32
};

/// Gradients that another body's are compared with.
struct GradientRoom {
  GradientRoom(const AttentionArgs& args, Device device);
  Tensor dq, dk, dv;  ///< rows as q's and as k's
};

/// Makes on Device::meta what a GPU's version makes for `args`, with the comparison that is due
/// once for each shape before cuDNN is trusted. Without a GPU to ask, cuDNN is taken to be there.
/// Whether it is cuDNN that would do it.
bool count_attention_rooms(const AttentionArgs& args, bool backward);

}  // namespace vfm::ops
