// Group normalisation of a video with one group for each frame, and SiLU after it.
//
// The statistics of a frame are over its rows, columns and channels together, never over time: so a
// video can be computed in chunks. They are a step of their own, so that a frame may lie in parts:
// from the moments of the parts come those of the frame (combine_moments), to rounding; or on the
// CPU, to the bit, from sums over stretches of its pixels that are the same however it is cut.
// Source: Wu and He, "Group Normalization" (2018), with one group.
// Shape letters: T frames, H rows, W columns, C channels.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "ops/norm/frame_norm_kernels.h"
#include "ops/tape.h"

namespace vfm::ops {

/// x [T, H, W, C], f32 or bf16. Mean and variance (of the population) of each frame: [T, 2], f32,
/// on x's device. Not recorded.
Tensor frame_moments(const Tensor& x);

/// The moments of frames of which parts[i] are those of weights[i] elements. On the CPU.
Tensor combine_moments(const std::vector<Tensor>& parts, const std::vector<double>& weights);

/// Of a frame of so many pixels, the first of stretch i of kFrameNormChunks; that of the one behind
/// the last is `pixels`. Stretches of a small frame may be empty.
std::int64_t frame_chunk_begin(std::int64_t pixels, std::int64_t chunk);
/// Sums [T, chunks] of stretches of frames, from `first` on: x [T, H, W, C], on the CPU, has all of
/// them, and begins with the frames' pixel `begin`. And the moments [T, 2] that frame_moments() of
/// whole frames gives, from the sums of all stretches.
std::vector<ChunkSums> frame_chunk_sums(const Tensor& x, std::int64_t pixels, std::int64_t begin,
                                        std::int64_t first, std::int64_t chunks);
Tensor join_frame_chunks(std::span<const ChunkSums> sums, std::int64_t pixels,
                         std::int64_t channels);

/// y = (x - mean) / sqrt(variance + epsilon) * weight + bias, and with `silu` y / (1 + exp(-y)), in
/// x's dtype; weight and bias are [C], f32. The gradient is that for moments of x itself, which
/// are taken where `moments` is undefined.
Tensor frame_norm(Tape& tape, const Tensor& x, const Tensor& weight, const Tensor& bias,
                  float epsilon, bool silu, const Tensor& moments = {});

}  // namespace vfm::ops
