// The diffusion process of training on the GPU: noise, noisy samples and targets, and the loss. The
// CUDA versions of lib/train/diffusion/batch.cc and of the normal numbers of lib/base/philox.h.
//
// A pack holds samples one after the other, each with its own noise level sigma. x0 is the clean
// sample, e its noise, x = x0 + sigma e, and F is the network's output for c_in x:
//
//   latents = c_in x
//   target = (x0 - c_skip x) / c_out = c_in (sigma / sd x0 - sd e)
//   loss = lambda(sigma) (D - x0)^2 = (F - target)^2,
//     with D = c_skip x + c_out F and lambda = 1 / c_out^2
//
// The target is computed by its right side, which avoids the left side's cancellation at small and
// large sigma; D itself is not needed. c_in, c_skip, c_out and sd = sigma_data are those of EDM in
// lib/models/process/process.h. Elements are computed in f32. Sums are in double over fixed chunks
// in a fixed order, with the same bits on any GPU.
// Thread-safety: launches on the given stream; keeps no state.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

struct CUstream_st;  // cudaStream_t

namespace vfm::kernels {

/// Elements of a sample that one block processes.
inline constexpr std::int64_t kDiffusionChunk = 4096;

/// Elements begin..begin+count-1 of the pack, and their factors.
struct DiffusionSample {
  std::int64_t begin = 0, count = 0;
  float in = 0;        ///< c_in
  float in_noise = 0;  ///< c_in sigma
  float of_x0 = 0;     ///< c_in sigma / sigma_data
  float of_noise = 0;  ///< c_in sigma_data
  /// cipher_key() and stream() of a vfm::Random; the noise is its normal(0), normal(1), ...
  std::uint32_t key[2] = {}, stream[2] = {};
  /// For video-to-world models: the number of elements of a channel; the first `given` of them
  /// belong to given frames. 0: no given frames, and no mark.
  std::int64_t channel = 0, given = 0;
  std::int64_t latents = 0;             ///< start of the sample in the noisy latents
  float given_in = 0, given_noise = 0;  ///< `in` and `in_noise` of given frames
};

/// N samples, on the device. The arrays of a pack, all f32, are aligned to 16 bytes. A sample whose
/// `begin` is a multiple of 4 is read and written 16 bytes at a time.
struct DiffusionPack {
  const DiffusionSample* samples = nullptr;  ///< [N]
  std::int64_t sample_count = 0;
  std::int64_t longest = 0;  ///< the most elements of a sample; at most 65,535 chunks
};

// All functions return a cudaError_t: 0 on success, the launch's error, or 1 (invalid value) for a
// size that is negative or too large. Packs without samples, and empty samples, succeed.

/// Fills `noise` with standard normal numbers. The words of the Philox stream and the uniform
/// numbers made from them equal those of vfm::Random exactly. The normal numbers are computed in
/// double as there. They differ only where the GPU library's logarithm, sine or cosine does: very
/// rarely, and by at most one unit in the last place of the f32.
int diffusion_noise(const DiffusionPack& pack, float* noise, CUstream_st* stream);

/// Writes latents and target from x0 and noise. latents and target must not overlap. Each may be x0
/// or noise, except latents if there are marks: then `channel` more elements follow the sample, 1
/// where frames are given and 0 elsewhere.
int diffusion_mix(const DiffusionPack& pack, const float* x0, const float* noise, float* latents,
                  float* target, CUstream_st* stream);

struct DiffusionLoss {
  DiffusionPack pack;
  const float* output = nullptr;  ///< F
  const float* target = nullptr;
  double scale = 1;
  float* seed = nullptr;      ///< output: 2 scale (F - target), the gradient of scale * the sum of
                              ///< all losses; may be output or target; null if not wanted
  double* partial = nullptr;  ///< diffusion_partials(pack) numbers, on the device
  double* sums = nullptr;     ///< [N] output: the sum of (F - target)^2 over each sample; given
                              ///< frames add nothing, and their gradient is 0
};

inline std::int64_t diffusion_partials(const DiffusionPack& pack) {
  return pack.sample_count * ((pack.longest + kDiffusionChunk - 1) / kDiffusionChunk);
}

int diffusion_loss(const DiffusionLoss& call, CUstream_st* stream);

}  // namespace vfm::kernels
