// What cuDNN does here: attention (attention/attention_cudnn_cuda.h) and convolutions
// (conv/conv2d_cudnn_cuda.h), each only after its results were compared with those of our own
// kernels.
// Thread-safety: one thread drives the GPU.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

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

/// Two results differ by no more than rounding: |tried - reference| <= kCudnnTolerance |reference|,
/// Euclidean norms.
inline constexpr double kCudnnTolerance = 2e-2;

/// Columns of a matrix of bf16 on the GPU; rows are `stride` elements apart.
struct ResultPart {
  const char* name;
  const void* data;
  std::int64_t rows, width, stride;
};

struct ResultNorms {
  double difference = 0, reference = 0;
};

/// Of long matrices 32 pieces of 64 rows, evenly spread, the first and the last rows among them:
/// gigabytes would have to be copied for all. Both are of one shape.
ResultNorms compare_results(const ResultPart& tried, const ResultPart& reference);

}  // namespace vfm::ops
