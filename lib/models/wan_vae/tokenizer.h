// Wan's video autoencoder from a folder on disk: diffusers' AutoencoderKLWan. The folder has
// config.json and weights, or is the component "vae" of a pipeline's folder, or has only weights
// under the names of the authors' own files (models/wan_vae/names.h).
//
// A video is processed frame by frame, so memory does not grow with its length.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>

#include "models/tokenizer.h"
#include "models/wan_vae/autoencoder.h"

namespace vfm::models {

struct TokenizerFamily;
extern const TokenizerFamily kWanVaeFamily;

class WanVaeTokenizer final : public VideoTokenizer {
 public:
  /// Computes in the type config.compute; if that is empty, in f32 on the CPU and in bf16 on a GPU.
  /// `memory` limits the bytes of activations; 0: no limit. Throws Error{usage} if the folder does
  /// not exist, has another type or hash, or has weights that do not fit. With `ranks` a
  /// collective.
  WanVaeTokenizer(const TokenizerConfig& config, Device device, std::uint64_t memory = 0,
                  const LoadingRanks& ranks = {});

  int channels() const override { return model_->config().z_dim; }
  int time_factor() const override { return model_->config().time_factor(); }
  int space_factor() const override { return model_->config().space_factor(); }
  /// Latents are the mode of the posterior.
  std::vector<float> encode(std::span<const float> pixels, int frames, int height,
                            int width) const override;
  std::vector<float> encode_bytes(const Tensor& rgb) const override;
  /// Pixels are clamped to [-1, 1].
  std::vector<float> decode(std::span<const float> latents, int frames, int height,
                            int width) const override;
  void decode_stream(std::span<const float> latents, int frames, int height, int width,
                     const FrameSink& sink) const override;
  /// Ranks share the rows of a frame.
  void decode_together(dist::Group& group, std::span<const float> latents, int frames, int height,
                       int width, const FrameSink& sink) const override;
  bool shares_decoding() const override { return true; }
  void check_memory(bool encodes, int frames, int height, int width, int ranks) const override;
  /// latents_mean and latents_std of the folder.
  std::optional<LatentScale> statistics() const override { return statistics_; }
  TokenizerConfig config() const override;

 private:
  /// Gives frame t as [H / P, W / P, 3 P P], f32 on the CPU.
  using FrameOf = std::function<Tensor(std::int64_t t)>;
  std::vector<float> encode_frames(const FrameOf& frame, int frames, int height, int width) const;
  std::vector<Tensor> shown(WanAutoencoder::Decoder& stream, const Tensor& latent, bool last) const;
  std::int64_t band(bool encodes, int frames, int height, int width, int ranks = 1) const;

  std::string folder_, hash_;
  DType compute_ = DType::f32;
  Device device_;
  double memory_;
  std::optional<LatentScale> statistics_;
  std::optional<WanAutoencoder> model_;
};

}  // namespace vfm::models
