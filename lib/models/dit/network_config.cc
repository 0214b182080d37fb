// Checks of configurations and of batches.
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "base/format.h"
#include "models/config_limits.h"
#include "models/dit/architecture.h"
#include "models/dit/network.h"

namespace vfm::models {
namespace {

bool within(int value, int most) {
  return value > 0 && value <= most;
}

}  // namespace

void NetworkConfig::validate() const {
  need_field(within(in_channels, 1 << 16), "in_channels", in_channels, "1 to 65536");
  need_field(within(out_channels, 1 << 16), "out_channels", out_channels, "1 to 65536");
  need_field(within(num_attention_heads, kMostWidth) &&
                 attention_head_dim <= kMostWidth / num_attention_heads,
             "num_attention_heads", num_attention_heads,
             vfm::format("positive, and times 'attention_head_dim', {}, at most 1048576",
                         attention_head_dim));
  architecture->check(*this);
  need_field(within(num_layers, kMostLayers), "num_layers", num_layers, "1 to 4096");
  need_field(mlp_ratio > 0 && mlp_ratio <= 64 && mlp_ratio * width() >= 1, "mlp_ratio", mlp_ratio,
             "positive, and at most 64");
  need_field(within(text_embed_dim, kMostWidth), "text_embed_dim", text_embed_dim, "1 to 1048576");
  for (std::size_t i = 0; i < 3; ++i) {
    need_field(within(patch_size[i], 256), "patch_size", patch_size[i], "1 to 256");
    need_field(max_size[i] >= patch_size[i] && max_size[i] <= kLongestTable, "max_size",
               max_size[i],
               vfm::format("at least the {} of 'patch_size', at most 65536", patch_size[i]));
  }
}

int NetworkConfig::key_value_heads() const {
  return architecture->key_value_heads != nullptr ? architecture->key_value_heads(*this)
                                                  : num_attention_heads;
}

nn::HeadShape NetworkConfig::heads() const {
  return {num_attention_heads, key_value_heads(), attention_head_dim, architecture->space_time};
}

std::int64_t NetworkConfig::hidden() const {
  return architecture->hidden(*this);
}

std::int64_t NetworkSample::tokens(const NetworkConfig& config) const {
  const auto& p = config.patch_size;
  return std::int64_t{frames / p[0]} * (height / p[1]) * (width / p[2]);
}

int NetworkConfig::text_width() const {
  return architecture->text_width != nullptr ? architecture->text_width(*this) : text_embed_dim;
}

void NetworkBatch::check(const NetworkConfig& config) const {
  std::int64_t latent_values = 0, text_rows = 0;
  const auto& p = config.patch_size;
  for (const NetworkSample& s : samples) {
    if (s.frames <= 0 || s.height <= 0 || s.width <= 0 || s.frames % p[0] || s.height % p[1] ||
        s.width % p[2])
      fail("a latent of {}x{}x{} is not made of patches of {}x{}x{}", s.frames, s.height, s.width,
           p[0], p[1], p[2]);
    if (s.text_tokens < 1) fail("a sample has no text token; no text is one zero token");
    if (s.clean_frames < 0 || s.clean_frames > s.frames || s.clean_frames % p[0])
      fail("{} of {} latent frames are given without noise: must be 0 to {}, in patches of {}",
           s.clean_frames, s.frames, s.frames, p[0]);
    if (s.clean_frames > 0 && given_by(config) != GivenFramesBy::clean_time)
      fail(
          "{} latent frames are given without noise, but all frames of a sample have one noise "
          "level in this '{}'",
          s.clean_frames, config.architecture->name);
    latent_values += std::int64_t{s.frames} * s.height * s.width * config.in_channels;
    text_rows += s.text_tokens;
  }
  if (samples.empty()) fail("a pack without samples");
  if (latents.dtype() != DType::f32 || latents.elements() != latent_values)
    fail("latents {} do not fit the pack, which has {} values", to_string(latents.shape()),
         latent_values);
  if (text.dtype() != DType::f32 || text.shape() != Shape{text_rows, config.text_embed_dim})
    fail("text {} is not [{}, {}]", to_string(text.shape()), text_rows, config.text_embed_dim);
  if (c_noise.defined() && (c_noise.dtype() != DType::f32 ||
                            c_noise.elements() != static_cast<std::int64_t>(samples.size())))
    fail("noise levels {} are not those of {} samples", to_string(c_noise.shape()), samples.size());
}

Tensor NetworkBatch::noise_levels(Device device) const {
  if (c_noise.defined()) return c_noise.to(device);
  const Tensor levels({static_cast<std::int64_t>(samples.size())});
  for (std::size_t i = 0; i < samples.size(); ++i)
    levels.data<float>()[i] = samples[i].c_noise;
  return levels.to(device);
}

}  // namespace vfm::models
