// NVIDIA's Cosmos tokenizers from a folder on disk: diffusers' AutoencoderKLCosmos, or the discrete
// CausalDiscreteVideoTokenizer. The folder has config.json and weights, or is the component "vae"
// of a pipeline's folder. It may also be a run of vfm-train or one of its checkpoints; then
// averaged weights are used if there are any.
//
// A video is processed some latent frames at a time, so memory does not grow with its length,
// except for the keys and values of models/cosmos/autoencoder.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>

#include "models/cosmos/autoencoder.h"
#include "models/cosmos/config_json.h"
#include "models/cosmos/decode_split.h"
#include "models/fsq.h"
#include "models/tokenizer.h"

namespace vfm::models {

struct TokenizerFamily;
extern const TokenizerFamily kCosmosFamily, kCosmosDiscreteFamily;

class CosmosTokenizer final : public VideoTokenizer {
 public:
  /// Computes in the type config.compute; if that is empty, in f32 on the CPU and in bf16 on a GPU.
  /// Throws Error{usage} if the folder does not exist, has another type or hash, or has weights
  /// that do not fit. With `ranks` a collective.
  explicit CosmosTokenizer(const TokenizerConfig& config, Device device = Device::cpu,
                           CosmosRoom room = {}, const LoadingRanks& ranks = {});

  int channels() const override { return model_->config().latent_channels; }
  int time_factor() const override { return model_->config().temporal_compression_ratio; }
  int space_factor() const override { return model_->config().spatial_compression_ratio; }
  int vocabulary() const override { return fsq_ ? fsq_->codes() : 0; }
  /// Latents of a discrete tokenizer are the values of the codes.
  std::vector<float> encode(std::span<const float> pixels, int frames, int height,
                            int width) const override;
  std::vector<float> encode_bytes(const Tensor& rgb) const override;
  std::vector<float> decode(std::span<const float> latents, int frames, int height,
                            int width) const override;
  void decode_stream(std::span<const float> latents, int frames, int height, int width,
                     const FrameSink& sink) const override;
  void decode_together(dist::Group& group, std::span<const float> latents, int frames, int height,
                       int width, const FrameSink& sink) const override;
  void check_memory(bool encodes, int frames, int height, int width, int ranks) const override;
  bool shares_decoding() const override { return true; }
  std::vector<std::int32_t> encode_codes(std::span<const float> pixels, int frames, int height,
                                         int width) const override;
  std::vector<std::int32_t> codes_of_bytes(const Tensor& rgb) const override;
  std::vector<float> latent_of_codes(std::span<const std::int32_t> codes) const override;
  /// latents_mean and latents_std of the folder.
  std::optional<LatentScale> statistics() const override { return statistics_; }
  TokenizerConfig config() const override;

 private:
  /// Gives frames [from, to) as [to - from, H, W, 3] f32 on the device.
  using Chunk = std::function<Tensor(std::int64_t from, std::int64_t to)>;
  std::vector<float> encode_chunks(const Chunk& chunk, int frames, int height, int width) const;
  std::vector<std::int32_t> codes_of(const std::vector<float>& values) const;
  CosmosSplit split(CosmosWork work, int frames, int height, int width, int ranks = 1) const;

  std::string folder_, hash_;
  DType compute_ = DType::f32;
  Device device_;
  CosmosRoom room_;
  std::optional<LatentScale> statistics_;
  std::optional<CosmosAutoencoder> model_;
  std::optional<Fsq> fsq_;
};

}  // namespace vfm::models
