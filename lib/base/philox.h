// Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as
// 1, 2, 3", SC 2011).
//
// Every random number of vfm is a pure function of (seed, purpose, step or epoch, sample key,
// element index). Random numbers do not depend on MPI rank, thread or order. Element i can be drawn
// without elements 0..i-1.
// Thread-safety: objects may be copied and shared.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace vfm {

/// Returns one block of four 32-bit words of the cipher: 10 rounds with the published constants.
std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                        std::array<std::uint32_t, 2> key) noexcept;

/// The purpose of a stream. Streams for different purposes never overlap. Saved results depend on
/// these values: add values, but never change them.
enum class Purpose : std::uint32_t {
  weight_init = 1,    // Initial weights, by hash of the parameter's name.
  noise = 2,          // Training noise, by step and sample key.
  sigma = 3,          // Noise level, by step and sample key.
  text_dropout = 4,   // Dropped text conditions, by step and sample key.
  data_order = 5,     // Order of training data, by epoch.
  sampler_noise = 6,  // Noise of generation, by prompt index or key.
  shard_shuffle = 7,  // Global shuffle of vfm-shard.
  validation = 8,     // Fixed noise of the validation loss.
  sigma_strata = 9,   // Assignment of a step's samples to strata of the noise level.
  split = 10,         // Train/val split by source.
  crop = 11,          // Random crops, by step (0 in vfm-pack) and sample key.
  projection = 12,    // Fixed random vectors of the hashing text embedder.
  test = 13,
  synthetic = 14,        // Synthetic training data: latents at step 0, text at step 1.
  condition_noise = 15,  // Noise on condition frames in generation, by noise level and prompt.
  condition = 16,        // Number and noise level of condition frames, by step and sample key.
  caption = 17,          // Choice of one of a sample's captions, by epoch and sample key.
  estimate = 20,         // Choice of the input records that a dry run reads.
  balance = 21,          // Choice of samples (step 0, by key) and of cluster centres (step 1).
};

/// An indexed, stateless stream of random numbers.
class Random {
 public:
  /// `step` is a step, epoch or other counter below 2^32. `key` is a 64-bit hash that names the
  /// sample.
  Random(std::uint64_t seed, Purpose purpose, std::uint32_t step = 0,
         std::uint64_t key = 0) noexcept;

  /// Returns element `i` as 32 random bits.
  std::uint32_t bits(std::uint64_t i) const noexcept;
  /// Returns element `i`, uniform in the open interval (0, 1), from 32 random bits.
  double uniform(std::uint64_t i) const noexcept;
  /// Returns element `i`, a standard normal, by Box-Muller (normals.h) from words 2k and 2k+1 of
  /// the stream, where k = i / 2, rounded down.
  float normal(std::uint64_t i) const noexcept;
  /// Sets out[j] to normal(first + j). This is faster than calls of normal().
  void fill_normal(std::span<float> out, std::uint64_t first = 0) const noexcept;
  /// Sets out[j] to uniform(first + j) as float.
  void fill_uniform(std::span<float> out, std::uint64_t first = 0) const noexcept;
  /// Returns a uniformly random permutation of 0..n-1 (Fisher-Yates on this stream).
  std::vector<std::uint64_t> permutation(std::uint64_t n) const;

  /// For block i of this stream, the arguments of philox4x32() are the key cipher_key() and the
  /// counter {low half of i, high half of i, stream()[0], stream()[1]}. GPU kernels that use this
  /// key and counter draw the same numbers.
  const std::array<std::uint32_t, 2>& cipher_key() const { return key_; }
  const std::array<std::uint32_t, 2>& stream() const { return sample_; }

 private:
  std::array<std::uint32_t, 4> block(std::uint64_t index) const noexcept;
  std::array<std::uint32_t, 2> key_;
  std::array<std::uint32_t, 2> sample_;
};

/// Returns the 64-bit name of a sample for Random: the XXH3 of its key string.
std::uint64_t random_key(std::string_view sample_key) noexcept;

/// Returns the inverse of the standard normal CDF for 0 < p < 1, by Acklam's rational approximation
/// with one Halley step. The relative error is below 1e-9.
double inverse_normal_cdf(double p);

}  // namespace vfm
