// What cuDNN does here: attention (attention/attention_cudnn_cuda.h) and convolutions
// (conv/conv2d_cudnn_cuda.h), each only after its results were compared with those of our own
// kernels.
// Thread-safety: one thread drives the GPU.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tensor/device.h"

namespace vfm::ops {

/// Why this machine or build cannot use it (no cuDNN, no GPU of Hopper's generation or later), or
/// empty if it can. Opens cuDNN.
std::string why_no_cudnn();
/// Whether work that is counted (tensor/meta.h) would be done by cuDNN where it can: by a machine
/// without a GPU one that has it is meant.
inline bool counts_as_cudnn() {
  if constexpr (kHaveCuda) return !why_no_gpu().empty() || why_no_cudnn().empty();
  return true;
}
/// cuDNN's version, or why there is none to open. For people.
std::string describe_cudnn();

/// Columns of a matrix of bf16 on the GPU; rows are `stride` elements apart.
struct ResultPart {
  const char* name;
  const void* data;
  std::int64_t rows, width, stride;
};

/// What is known of cuDNN's kernels for one shape. `what` names the shape in messages: "attention
/// of 4 samples ...".
struct CudnnTrust {
  bool refused = false;
  bool put_off = false;  ///< which was said

  /// From now on our own kernels run this shape; a warning says so.
  void refuse(const std::string& what, const std::string& why);
  /// Whether cuDNN's parts differ from our own, the second of each pair, by no more than rounding:
  /// |tried - own| <= 2 % of |own|, Euclidean norms. Refuses if not; `checked` becomes true unless
  /// all are zero, which proves nothing. False too, and nothing is decided but said once, where an
  /// own part is not finite.
  bool agree(bool& checked, const std::string& what,
             const std::vector<std::pair<ResultPart, ResultPart>>& pairs);
};

}  // namespace vfm::ops
