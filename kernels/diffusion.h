// The diffusion process of training on the GPU: noise, noisy samples and targets, the loss. The
// CUDA versions of what lib/train/diffusion/batch.cc does element by element, and of the normal
// numbers of lib/base/philox.h.
//
// A pack holds samples one after the other, each with its own noise level sigma. With the clean
// sample x0, its noise e, x = x0 + sigma e, and the network's answer F to c_in x:
//
//   latents = c_in x
//   target = (x0 - c_skip x) / c_out = c_in (sigma / sd x0 - sd e)
//   loss = lambda(sigma) (D - x0)^2 = (F - target)^2,  D = c_skip x + c_out F,  lambda = 1 /
//   c_out^2
//
// The target is computed by its right side, which has none of the left side's cancellation at small
// and large sigma; D itself is not needed. c_in, c_skip, c_out and sd = sigma_data are those of EDM
// in lib/models/process/process.h. Element by element in f32; sums in double, over fixed chunks in
// a fixed order, the same bits on any GPU.
// Thread-safety: launches on the given stream; keeps nothing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

struct CUstream_st;  // cudaStream_t

namespace vfm::kernels {

/// Elements of a sample that one block works on.
inline constexpr std::int64_t kDiffusionChunk = 4096;

/// Elements begin..begin+count-1 of the pack, and what they are made with.
struct DiffusionSample {
  std::int64_t begin = 0, count = 0;
  float in = 0;        ///< c_in
  float in_noise = 0;  ///< c_in sigma
  float of_x0 = 0;     ///< c_in sigma / sigma_data
  float of_noise = 0;  ///< c_in sigma_data
  /// vfm::Random's cipher_key() and stream(): the noise is its normal(0), normal(1), ...
  std::uint32_t key[2] = {}, stream[2] = {};
  /// Of a video-to-world model: the elements of a channel, of which the first `given` are of given
  /// frames. 0: there are none, and no mark.
  std::int64_t channel = 0, given = 0;
  std::int64_t latents = 0;             ///< where the sample begins in the noisy latents
  float given_in = 0, given_noise = 0;  ///< `in` and `in_noise` of given frames
};

/// N samples, on the device. The arrays of a pack, all f32, are aligned to 16 bytes; a sample whose
/// `begin` is a multiple of 4 is read and written 16 bytes at a time.
struct DiffusionPack {
  const DiffusionSample* samples = nullptr;  ///< [N]
  std::int64_t sample_count = 0;
  std::int64_t longest = 0;  ///< no sample has more elements; at most 65,535 chunks
};

// All return a cudaError_t: 0, or what is wrong with the launch; 1 (invalid value) for a size that
// is negative or too large. No samples, or empty ones, are no error.

/// noise = standard normal numbers. The words of the Philox stream and the uniform numbers made of
/// them are exactly vfm::Random's; the normal numbers are computed in double as there, and differ
/// where the logarithm, sine or cosine of the GPU's library does: by at most one unit in the last
/// place of the f32, and hardly ever.
int diffusion_noise(const DiffusionPack& pack, float* noise, CUstream_st* stream);

/// latents and target from x0 and noise. latents and target are apart; each may be x0 or noise, but
/// latents not where there are marks: after such a sample come `channel` elements more, 1 where the
/// frames are given and 0 elsewhere.
int diffusion_mix(const DiffusionPack& pack, const float* x0, const float* noise, float* latents,
                  float* target, CUstream_st* stream);

struct DiffusionLoss {
  DiffusionPack pack;
  const float* output = nullptr;  ///< F
  const float* target = nullptr;
  double scale = 1;
  float* seed = nullptr;      ///< out: the gradient of scale * the sum of all losses by F, that is
                              ///< 2 scale (F - target); may be output or target; null: not wanted
  double* partial = nullptr;  ///< diffusion_partials(pack) numbers, on the device
  double* sums = nullptr;     ///< [N] out: the sum of (F - target)^2 over each sample; given frames
                              ///< add nothing, and their gradient is 0
};

inline std::int64_t diffusion_partials(const DiffusionPack& pack) {
  return pack.sample_count * ((pack.longest + kDiffusionChunk - 1) / kDiffusionChunk);
}

int diffusion_loss(const DiffusionLoss& call, CUstream_st* stream);

}  // namespace vfm::kernels
