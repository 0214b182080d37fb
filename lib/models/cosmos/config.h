// The configuration of a Cosmos tokenizer: the fields of diffusers' AutoencoderKLCosmos, and of
// NVIDIA's discrete tokenizers. JSON is in config_json.h, so that the network does not need it.
//
// The published models are CV8x8x8, whose factors of 8 come from patches of 4 and one halving;
// CV4x8x8, with patches of 2; CV8x16x16, with a second halving in space; and DV4x8x8, DV8x8x8 and
// DV8x16x16, the same with codes in the middle.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

namespace vfm::models {

struct CosmosConfig {
  int in_channels = 3, out_channels = 3;  ///< colours; must be 3
  int latent_channels = 16;  ///< channels of a latent pixel; with `levels` their number
  int z_channels = 16;       ///< channels that the encoder gives; continuous: latent_channels
  std::vector<int> encoder_block_out_channels{128, 256, 512, 512};
  std::vector<int> decode_block_out_channels{256, 512, 512, 512};  ///< from the pixels inwards
  /// Resolutions at which a block attends, if pictures have side `resolution`.
  std::vector<int> attention_resolutions{32};
  int resolution = 1024;
  int num_layers = 2;  ///< residual blocks at each resolution; the decoder has one more
  int patch_size = 4;  ///< size of the Haar patches in time, rows and columns
  int spatial_compression_ratio = 8, temporal_compression_ratio = 8;
  std::vector<int> levels;  ///< levels of a discrete tokenizer (models/fsq.h); empty: continuous

  /// Sets fields that follow from others: latent_channels of a discrete tokenizer from its levels,
  /// z_channels of a continuous one from latent_channels.
  void settle();
  /// Throws Error{usage} naming `what` and the field for a field out of range, and for more
  /// halvings in time than in space, which no published model has.
  void validate(std::string_view what) const;

  bool discrete() const { return !levels.empty(); }
  /// Returns whether block i of the encoder (decoder) ends by halving (doubling) in space, or in
  /// time.
  bool halves_space(int i) const;
  bool halves_time(int i) const;
  bool doubles_space(int i) const;
  bool doubles_time(int i) const;
  int encoder_blocks() const { return static_cast<int>(encoder_block_out_channels.size()) - 1; }
  int decoder_blocks() const { return static_cast<int>(decode_block_out_channels.size()) - 1; }

 private:
  int space_halvings() const;  // after the patches
  int time_halvings() const;
};

}  // namespace vfm::models
