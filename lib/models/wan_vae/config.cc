// SPDX-License-Identifier: Apache-2.0
#include "models/wan_vae/config.h"

#include <algorithm>

#include "base/error.h"

namespace vfm::models {
namespace {

int at(const std::vector<int>& list, int i) {
  return list[static_cast<std::size_t>(i)];
}

void check_ranges(const WanVaeConfig& c, std::string_view what) {
  const auto need = [&](bool holds, const char* field, int value, int most) {
    if (!holds) fail_usage("{}: '{}' is {}, must be 1 to {}", what, field, value, most);
  };
  const auto need_within = [&](const char* field, int value, int most) {
    need(value >= 1 && value <= most, field, value, most);
  };
  need_within("base_dim", c.base_dim, 4096);
  need_within("decoder_base_dim", c.decoder_base_dim, 4096);
  need_within("z_dim", c.z_dim, 1024);
  need_within("num_res_blocks", c.num_res_blocks, 64);
  need_within("patch_size", c.patch_size, 16);
  if (c.levels() < 2 || c.levels() > 6 ||
      !std::ranges::all_of(c.dim_mult, [](int n) { return n >= 1 && n <= 64; }))
    fail_usage("{}: 'dim_mult' must be 2 to 6 numbers of 1 to 64", what);
  if (static_cast<int>(c.temperal_downsample.size()) != c.levels() - 1)
    fail_usage("{}: 'temperal_downsample' has {} values, must have {}: one less than 'dim_mult'",
               what, c.temperal_downsample.size(), c.levels() - 1);
  const int colours = 3 * c.patch_size * c.patch_size;
  if (c.in_channels != colours || c.out_channels != colours)
    fail_usage(
        "{}: 'in_channels' is {} and 'out_channels' {}, must be {}: three colours of {} x "
        "{} pixels",
        what, c.in_channels, c.out_channels, colours, c.patch_size, c.patch_size);
}

// The shortcuts divide channels among pixels, and a decoder without them halves channels.
void check_divisions(const WanVaeConfig& c, std::string_view what) {
  const auto divides = [&](int whole, int part, const char* where, int level) {
    if (whole % part != 0)
      fail_usage("{}: level {} of the {} cannot divide {} channels among {}", what, level, where,
                 whole, part);
  };
  for (int i = 0; i < c.levels(); ++i) {
    if (!c.is_residual) {
      if (i > 0)
        divides(c.decoder_base_dim * c.dim_mult[static_cast<std::size_t>(c.levels() - i)], 2,
                "decoder", i);
      continue;
    }
    const int space = c.halves_space(i) ? 4 : 1;
    divides(c.encoder_in(i) * space * (c.halves_time(i) ? 2 : 1), c.encoder_out(i), "encoder", i);
    if (c.halves_space(i))
      divides(c.decoder_out(i) * space * (c.doubles_time(i) ? 2 : 1), c.decoder_in(i), "decoder",
              i);
  }
}

}  // namespace

bool WanVaeConfig::halves_time(int level) const {
  return halves_space(level) && at(temperal_downsample, level) != 0;
}

bool WanVaeConfig::doubles_time(int i) const {
  return halves_space(i) && at(temperal_downsample, levels() - 2 - i) != 0;
}

int WanVaeConfig::encoder_in(int i) const {
  return base_dim * (i == 0 ? 1 : at(dim_mult, i - 1));
}

int WanVaeConfig::encoder_out(int i) const {
  return base_dim * at(dim_mult, i);
}

int WanVaeConfig::decoder_in(int i) const {
  if (i == 0) return decoder_base_dim * dim_mult.back();
  return decoder_out(i - 1) / (is_residual ? 1 : 2);
}

int WanVaeConfig::decoder_out(int i) const {
  return decoder_base_dim * at(dim_mult, levels() - 1 - i);
}

int WanVaeConfig::time_factor() const {
  int factor = 1;
  for (int i = 0; i < levels(); ++i)
    factor *= halves_time(i) ? 2 : 1;
  return factor;
}

int WanVaeConfig::space_factor() const {
  return patch_size << (levels() - 1);
}

void WanVaeConfig::validate(std::string_view what) const {
  check_ranges(*this, what);
  check_divisions(*this, what);
  if (time_factor() != 4)
    fail_usage(
        "{}: 'temperal_downsample' halves time to a {}th, must be a fourth: the reference always "
        "takes four frames at a time",
        what, time_factor());
}

}  // namespace vfm::models
