// The temporary tensors of the CUDA bodies of attention. The bodies allocate them; attention.cc
// allocates them on Device::meta to count them (tensor/meta.h). The workspace of a cuDNN plan is
// not counted, as only cuDNN on a GPU knows its size. Shape letters: S queries, L keys, H heads, G
// key heads, K head dim.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/attention_kernels.h"
#include "tensor/tensor.h"

namespace vfm::ops {

/// Tensors of our own kernels' backward pass.
struct OwnBackwardRoom {
  OwnBackwardRoom(const AttentionArgs& args, Device device);
  Tensor row_sums;  ///< [H, S, 2] f32
};

/// Tensors of cuDNN's backward pass.
struct CudnnBackwardRoom {
  CudnnBackwardRoom(const AttentionArgs& args, Device device);
  Tensor row_sums;            ///< [S + spare rows, H] f32
  Tensor dq_sum;              ///< f32, a row for all heads
  Tensor dk_heads, dv_heads;  ///< bf16; undefined if H equals G
};

/// What cuDNN makes of a part of the keys, and what it reads in backward, before and after the
/// change to our own type and order.
struct PartRoom {
  PartRoom(const AttentionArgs& args, bool backward, Device device);
  Tensor out;         ///< [S, H K] bf16; undefined in backward
  Tensor statistics;  ///< [S + spare rows, H] f32
};

/// Results of forward, for a comparison with another body's or for use in backward.
struct ForwardRoom {
  ForwardRoom(const AttentionArgs& args, Device device);
  Tensor out;          ///< [S, H K]; f32 of a part
  Tensor log_sum_exp;  ///< [H, S] f32
};

/// Gradients, for a comparison with another body's.
struct GradientRoom {
  GradientRoom(const AttentionArgs& args, Device device);
  Tensor dq, dk, dv;  ///< dq like q; dk and dv like k
};

/// Allocates on Device::meta what the GPU version allocates for `args`, including the comparison
/// that each shape needs once before cuDNN is trusted. Without a GPU, cuDNN is assumed to be
/// present. Returns whether cuDNN would compute the call.
bool count_attention_rooms(const AttentionArgs& args, bool backward);

}  // namespace vfm::ops
