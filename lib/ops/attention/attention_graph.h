// Attention over a pack as graphs for cuDNN, forward and backward.
//
// Both are spelled out in products, pointwise operations and reductions: the pattern that cuDNN
// recognises and runs as fused attention kernels. Its operation that is all of attention at once
// gives the same kernel forward, but no causal mask, and takes no graph backward (9.19).
// Source: the operations of NVIDIA, "cudnn-frontend" 1.x, scaled_dot_product_flash_attention.h.
//
// Tensors are ragged: the memory is that of the pack, rows of all samples below each other, q, k
// and v being columns of wider matrices. Softmax statistics are the natural logarithms of the sums
// of e^score, as those of our own kernels, but [S, H] where those are [H, S].
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/attention_shape.h"
#include "ops/cudnn/tensor_graph.h"

namespace vfm::ops {

/// The ids of the memory that the graphs have.
enum AttentionId : std::int64_t {
  kQ = 1,
  kK,
  kV,
  kOut,
  kStatistics,  ///< f32 [S, H]; out of forward, in of backward
  // i32, a length a sample.
  kQueryLengths,
  kKeyLengths,
  // ragged_offsets: of q and dq; of k, v, dk and dv; of out, dout and dq's sums; of rows of H
  // numbers.
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
  kDkHeads,  ///< scratch if key_heads < heads: bf16 as dk and dv, rows heads / key_heads as long
  kDvHeads,
};

graph::Graph attention_forward_graph(const AttentionShape& shape);
graph::Graph attention_backward_graph(const AttentionShape& shape);

}  // namespace vfm::ops
