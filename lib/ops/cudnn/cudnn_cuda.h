// Checks for the two uses of cuDNN: attention (attention/attention_cudnn_cuda.h) and convolutions
// (conv/conv2d_cudnn_cuda.h). Each runs only after its results were compared with those of our own
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

/// Returns why this machine or build cannot use cuDNN (no cuDNN, no GPU of Hopper's generation or
/// later). Empty if it can. Loads cuDNN.
std::string why_no_cudnn();
/// Returns true if a dry run (tensor/meta.h) should count work as done by cuDNN. A machine without
/// a GPU is assumed to plan for one that has cuDNN.
inline bool counts_as_cudnn() {
  if constexpr (kHaveCuda) return !why_no_gpu().empty() || why_no_cudnn().empty();
  return true;
}
/// Returns a text for people: cuDNN's version, or why it cannot be loaded.
std::string describe_cudnn();

/// Columns of a matrix on the GPU, bf16 or f32. Consecutive rows are `stride` elements apart.
struct ResultPart {
  const char* name;
  const void* data;
  std::int64_t rows, width, stride;
  DType type = DType::bf16;
  bool logarithms = false;  ///< differences are relative to the numbers that they are logarithms of
};

/// The state of cuDNN's kernels for one shape. `what` names the shape in messages: "attention of 4
/// samples ...".
struct CudnnTrust {
  bool refused = false;
  const char* instead = "on our own kernels";  ///< how a refused shape runs, for the message
  bool put_off = false;  ///< the warning for a comparison that was put off was logged

  /// Makes our own kernels run this shape from now on. Logs a warning.
  void refuse(const std::string& what, const std::string& why);
  /// Compares cuDNN's result (first of each pair) with ours (second). Returns true if they differ
  /// only by rounding: |tried - own| <= `tolerance` |own|, Euclidean norms. Otherwise refuses the
  /// shape.
  /// Sets `checked` unless all of ours are zero, which proves nothing. If one of ours is not
  /// finite, returns false without a decision and warns once.
  bool agree(bool& checked, const std::string& what,
             const std::vector<std::pair<ResultPart, ResultPart>>& pairs, double tolerance = 2e-2);
};

}  // namespace vfm::ops
