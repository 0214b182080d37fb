// Graphs of attention over a pack for cuDNN, forward and backward.
//
// Both consist of products, pointwise operations and reductions, in the pattern that cuDNN
// recognises and runs as fused attention kernels. cuDNN's single operation for attention gives the
// same kernel forward, but has no causal mask and no backward graph (9.19).
// Source: the operations of NVIDIA, "cudnn-frontend" 1.x, scaled_dot_product_flash_attention.h.
//
// Tensors are ragged: the rows of all samples lie one below the other, as in the pack, and q, k and
// v are columns of wider matrices. The softmax statistics are the natural logarithms of the sums of
// e^score, as in our own kernels, but in the order [S, H] instead of [H, S].
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/attention_shape.h"
#include "ops/cudnn/tensor_graph.h"

namespace vfm::ops {

/// Ids of the graphs' tensors in memory.
enum AttentionId : std::int64_t {
  kQ = 1,
  kK,
  kV,
  kOut,
  kStatistics,  ///< f32 [S, H]; output of forward, input of backward
  // i32, the length of each sample.
  kQueryLengths,
  kKeyLengths,
  // Ragged offsets: of q and dq; of k, v, dk and dv; of out, dout and kDqSum; of rows of H numbers.
  kQOffsets,
  kKvOffsets,
  kOutOffsets,
  kRowOffsets,
  // Backward only.
  kDout,
  kDq,
  kDk,
  kDv,
  kRowSums,  ///< scratch: f32 [S, H]
  kDqSum,    ///< scratch: f32 [S, H K]
  kDkHeads,  ///< scratch if key_heads < heads: bf16 like dk and dv, with a row for all heads
  kDvHeads,
};

graph::Graph attention_forward_graph(const AttentionShape& shape);
graph::Graph attention_backward_graph(const AttentionShape& shape);

}  // namespace vfm::ops
