// Group normalisation of a video with one group for each frame, optionally followed by SiLU.
//
// The statistics of a frame are over its rows, columns and channels together, never over time, so a
// video can be computed in chunks. They are a separate step, so that a frame may be split into
// parts. combine_moments() computes the moments of the frame from those of the parts, up to
// rounding. On the CPU, join_frame_chunks() does so bit for bit, from sums over fixed stretches of
// pixels that do not depend on how the frame is split.
// Source: Wu and He, "Group Normalization" (2018), with one group.
// Shape letters: T frames, H rows, W columns, C channels.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "ops/norm/frame_norm_kernels.h"
#include "ops/tape.h"

namespace vfm::ops {

/// Returns mean and population variance of each frame, [T, 2] f32, on x's device. x is
/// [T, H, W, C], f32 or bf16. Not recorded.
Tensor frame_moments(const Tensor& x);

/// Returns the moments of frames, on the CPU; parts[i] has the moments of a part of weights[i]
/// elements.
Tensor combine_moments(const std::vector<Tensor>& parts, const std::vector<double>& weights);

/// Returns the first pixel of stretch `chunk` of a frame of `pixels` pixels, which has
/// kFrameNormChunks stretches; `pixels` for chunk kFrameNormChunks. Stretches of a small frame may
/// be empty.
std::int64_t frame_chunk_begin(std::int64_t pixels, std::int64_t chunk);
/// frame_chunk_sums() returns the sums [T, chunks] of stretches from `first` on. x [T, H, W, C] on
/// the CPU must contain them completely. It begins with pixel `begin` of the frames.
/// join_frame_chunks() computes from the sums of all stretches the moments [T, 2] that
/// frame_moments() gives for whole frames.
std::vector<ChunkSums> frame_chunk_sums(const Tensor& x, std::int64_t pixels, std::int64_t begin,
                                        std::int64_t first, std::int64_t chunks);
Tensor join_frame_chunks(std::span<const ChunkSums> sums, std::int64_t pixels,
                         std::int64_t channels);

/// y = (x - mean) / sqrt(variance + epsilon) * weight + bias, and with `silu` then
/// y / (1 + exp(-y)), in x's dtype. weight and bias are [C] f32. If `moments` is undefined, they
/// are computed from x. The gradient is always that for moments of x itself.
Tensor frame_norm(Tape& tape, const Tensor& x, const Tensor& weight, const Tensor& bias,
                  float epsilon, bool silu, const Tensor& moments = {});

}  // namespace vfm::ops
