// Attention in FP8 with cuDNN: the CUDA body of attention_fp8.h.
//
// A plan is built once for each Fp8AttentionShape and kept. Shapes are exact: a clip has samples of
// one or two lengths, and cuDNN is fastest without masks.
// Thread-safety: one thread drives the GPU.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "ops/attention/attention_fp8_graph.h"

namespace vfm::ops {

/// Returns why cuDNN cannot run attention in FP8 on this machine. Empty if it can. Versions before
/// 9.14 are left out: NVIDIA's own tests of FP8 attention begin there.
std::string why_no_cudnn_fp8();
/// Whether cuDNN can write the result in bf16, as on a B200 or B300. On an RTX of their generation
/// it cannot.
bool cudnn_fp8_writes_bf16();

/// Samples of equal lengths. Addresses on the GPU, aligned to 16 bytes.
struct Fp8CudnnCall {
  Fp8AttentionShape shape;
  const void *q, *k, *v;  ///< codes
  const float* scales;    ///< of queries, keys and values, and the inverse of the values'
  void* out;              ///< codes in the scale of the values; bf16 if shape.wide
};

/// Queues the call on the compute stream. Throws Error if cuDNN has no engine for the shape or
/// fails to run. Each sample has queries and keys: Hopper's kernel never ends for queries without
/// keys (cudnn-frontend's pull request 1069).
void attention_fp8_cudnn(const Fp8CudnnCall& call);

}  // namespace vfm::ops
