// SPDX-License-Identifier: Apache-2.0
#include "models/cosmos/config.h"

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "models/fsq.h"

namespace vfm::models {
namespace {

int log2_of(int n) {
  return std::bit_width(static_cast<unsigned>(n)) - 1;
}

bool power_of_two(int n, int most) {
  return n >= 1 && n <= most && std::has_single_bit(static_cast<unsigned>(n));
}

std::string list_text(const std::vector<int>& numbers) {
  std::string text;
  for (const int number : numbers)
    text += (text.empty() ? "" : ", ") + std::to_string(number);
  return text;
}

}  // namespace

int CosmosConfig::space_halvings() const {
  return log2_of(spatial_compression_ratio) - log2_of(patch_size);
}

int CosmosConfig::time_halvings() const {
  return log2_of(temporal_compression_ratio) - log2_of(patch_size);
}

bool CosmosConfig::halves_space(int i) const {
  return i < encoder_blocks() - 1 && i < space_halvings();
}

bool CosmosConfig::halves_time(int i) const {
  return i < encoder_blocks() - 1 && i < time_halvings();
}

// Not the mirror of the encoder: time is doubled from the second block on.
bool CosmosConfig::doubles_time(int i) const {
  return i < decoder_blocks() - 1 && i > 0 && i < time_halvings() + 1;
}

bool CosmosConfig::doubles_space(int i) const {
  return doubles_time(i) ||
         (i < decoder_blocks() - 1 && i < space_halvings() && space_halvings() > time_halvings());
}

void CosmosConfig::settle() {
  if (discrete())
    latent_channels = static_cast<int>(levels.size());
  else
    z_channels = latent_channels;
}

void CosmosConfig::validate(std::string_view what) const {
  const auto all_of_width = [](const std::vector<int>& widths) {
    return widths.size() >= 2 && widths.size() <= 8 &&
           std::ranges::all_of(widths, [](int n) { return n >= 1 && n <= 8192; });
  };
  if (in_channels != 3 || out_channels != 3)
    fail_usage("{}: {} and {} colours, must be 3", what, in_channels, out_channels);
  if (latent_channels < 1 || latent_channels > 1024 || z_channels < 1 || z_channels > 1024)
    fail_usage("{}: 'latent_channels' is {} and 'z_channels' {}, must be 1 to 1024", what,
               latent_channels, z_channels);
  if (!all_of_width(encoder_block_out_channels) || !all_of_width(decode_block_out_channels))
    fail_usage(
        "{}: 'encoder_block_out_channels' is [{}] and 'decode_block_out_channels' [{}], must be 2 "
        "to 8 numbers of 1 to 8192",
        what, list_text(encoder_block_out_channels), list_text(decode_block_out_channels));
  if (num_layers < 1 || num_layers > 64 || resolution < 1)
    fail_usage("{}: 'num_layers' is {} and 'resolution' {}, must be 1 to 64, and positive", what,
               num_layers, resolution);
  if (temporal_compression_ratio == 1)
    fail_usage(
        "{}: 'temporal_compression_ratio' is 1: a tokenizer of pictures (CI, DI) is another "
        "network, and is not supported; a tokenizer of videos (CV, DV) takes a picture as a video "
        "of one frame",
        what);
  if ((patch_size != 2 && patch_size != 4 && patch_size != 8) ||
      !power_of_two(spatial_compression_ratio, 64) || !power_of_two(temporal_compression_ratio, 64))
    fail_usage(
        "{}: 'patch_size' is {}, 'spatial_compression_ratio' {} and 'temporal_compression_ratio' "
        "{}, must be powers of two",
        what, patch_size, spatial_compression_ratio, temporal_compression_ratio);
  int balance_space = 0, balance_time = 0;
  for (int i = 0; i < 8; ++i) {
    balance_space += (halves_space(i) ? 1 : 0) - (doubles_space(i) ? 1 : 0);
    balance_time += (halves_time(i) ? 1 : 0) - (doubles_time(i) ? 1 : 0);
  }
  const int space = space_halvings(), time = time_halvings();
  if (time < 0 || space < time || space > encoder_blocks() - 1 || balance_space != 0 ||
      balance_time != 0)
    fail_usage(
        "{}: with a 'patch_size' of {} the 'spatial_compression_ratio' {} and the "
        "'temporal_compression_ratio' {} are {} halvings in space and {} in time, which do not fit "
        "{} 'encoder_block_out_channels' and {} 'decode_block_out_channels'",
        what, patch_size, spatial_compression_ratio, temporal_compression_ratio, space, time,
        encoder_block_out_channels.size(), decode_block_out_channels.size());
  if (discrete()) {
    try {
      const Fsq fsq(levels);
    } catch (const Error& error) {
      fail_usage("{}: {}", what, error.what());
    }
  }
}

}  // namespace vfm::models
