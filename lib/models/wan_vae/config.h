// The configuration of Wan's video autoencoder: the fields of diffusers' AutoencoderKLWan.
//
// The published models are that of Wan 2.1 (8 x 8 pixels and 4 frames to a latent pixel of 16
// channels; also of the 14B models of Wan 2.2) and that of Wan 2.2's TI2V-5B (16 x 16 x 4, 48
// channels: `is_residual`, with patches of 2 x 2 pixels). JSON is in config_json.h, so that the
// network does not need it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

namespace vfm::models {

struct WanVaeConfig {
  int base_dim = 96, decoder_base_dim = 96;  ///< channels of the first level
  int z_dim = 16;                            ///< latent channels
  std::vector<int> dim_mult{1, 2, 4, 4};     ///< channels of each level, in base_dim
  int num_res_blocks = 2;  ///< residual blocks of a level; the decoder has one more
  /// Whether a level ends by halving time, too; one less than levels, as the last halves nothing.
  std::vector<int> temperal_downsample{0, 1, 1};
  bool is_residual = false;               ///< shortcuts around the levels, as in Wan 2.2
  int in_channels = 3, out_channels = 3;  ///< colours of a patch
  int patch_size = 1;                     ///< side of a patch of pixels

  /// Throws Error{usage} naming `what` and the field for a field out of range, and for sizes that
  /// do not divide each other as the network needs.
  void validate(std::string_view what) const;

  int levels() const { return static_cast<int>(dim_mult.size()); }
  bool halves_space(int level) const { return level + 1 < levels(); }
  bool halves_time(int level) const;
  /// Whether level i of the decoder doubles time.
  bool doubles_time(int i) const;
  /// Channels that level i of the encoder (decoder) takes and gives, without its change of size.
  int encoder_in(int i) const;
  int encoder_out(int i) const;
  int decoder_in(int i) const;
  int decoder_out(int i) const;
  int time_factor() const;
  int space_factor() const;
};

}  // namespace vfm::models
