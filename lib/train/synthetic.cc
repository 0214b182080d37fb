// Made-up latents and clips (train/dataset.h).
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/philox.h"
#include "train/dataset.h"

namespace vfm::train {
namespace {

constexpr int kEach = 64;    // samples of a size
constexpr double kFps = 24;  // of those with several frames

std::vector<data::Entry> entries_of(const std::vector<std::array<int, 3>>& sizes) {
  std::vector<data::Entry> entries;
  for (int i = 0; i < kEach; ++i) {
    for (const auto& [frames, height, width] : sizes) {
      data::Entry& entry = entries.emplace_back();
      entry.key = fmt::format("synthetic-{:05}", entries.size());
      entry.frames = frames;
      entry.height = height;
      entry.width = width;
      entry.fps = frames > 1 ? kFps : 0;
    }
  }
  return entries;
}

}  // namespace

std::vector<std::array<int, 3>> Synthetic::parse_sizes(std::string_view text) {
  std::vector<std::array<int, 3>> sizes;
  const char* at = text.data();
  const char* const end = at + text.size();
  const auto refuse = [&] {
    fail_usage("'{}' is no list of sizes, FRAMESxHEIGHTxWIDTH,...", text);
  };
  while (true) {
    std::array<int, 3>& size = sizes.emplace_back();
    for (std::size_t i = 0; i < 3; ++i) {
      const auto [stop, error] = std::from_chars(at, end, size[i]);
      if (error != std::errc{} || size[i] < 1 || size[i] > 65536) refuse();
      at = stop;
      if (i < 2 && (at == end || *at++ != 'x')) refuse();
    }
    if (at == end) return sizes;
    if (*at++ != ',') refuse();
  }
}

Dataset::Dataset(const Synthetic& synthetic) : entries_(entries_of(synthetic.sizes)) {
  for (data::Entry& entry : entries_)
    entry.text_tokens = synthetic.text_tokens;
  const auto channels = static_cast<std::size_t>(synthetic.channels);
  info_ = {{"version", 1},
           {"tokenizer", nullptr},
           {"text_encoder", {{"dim", synthetic.text_width}}},
           {"channels", channels},
           {"mean", std::vector<double>(channels, 0.0)},
           {"std", std::vector<double>(channels, 1.0)}};
  scale_ = models::LatentScale::from_json(info_, "made-up latents");
}

Dataset::Dataset(const Synthetic& synthetic, const models::CosmosConfig& tokenizer)
    : time_factor_(tokenizer.temporal_compression_ratio),
      space_factor_(tokenizer.spatial_compression_ratio),
      entries_(entries_of(synthetic.sizes)),
      info_({{"clips", nullptr}}) {
  for (data::Entry& entry : entries_) {
    if (entry.height != entry.width || entry.height % space_factor_ != 0 ||
        (entry.frames - 1) % time_factor_ != 0)
      fail_usage(
          "made-up clips of {}x{}x{}: this tokenizer trains on 1 + k * {} frames of squares with "
          "sides that are multiples of {}",
          entry.frames, entry.height, entry.width, time_factor_, space_factor_);
    entry.frames = 1 + (entry.frames - 1) / time_factor_;
    entry.height = entry.width = entry.height / space_factor_;
  }
}

void Dataset::fit_made_up(DataRecipe& recipe) const {
  recipe.frames = recipe.size = 1;
  for (const data::Entry& entry : entries_) {
    recipe.frames = std::max(recipe.frames, 1 + (entry.frames - 1) * time_factor_);
    recipe.size = std::max(recipe.size, entry.height * space_factor_);
  }
}

CleanSample Dataset::make_up_clip(const data::Entry& entry) const {
  CleanSample sample;
  sample.key = entry.key;
  sample.frames = 1 + (entry.frames - 1) * time_factor_;
  sample.height = sample.width = entry.height * space_factor_;
  sample.fps = entry.fps;
  sample.pixels.resize(std::size_t{3} * sample.frames * sample.height * sample.width);
  Random(0, Purpose::synthetic, 0, random_key(entry.key)).fill_normal(sample.pixels);
  for (float& pixel : sample.pixels)
    pixel = std::clamp(pixel / 2, -1.0f, 1.0f);
  return sample;
}

data::LatentSample Dataset::make_up(const data::Entry& entry) const {
  const auto values = static_cast<std::size_t>(entry.frames) *
                      static_cast<std::size_t>(entry.height) *
                      static_cast<std::size_t>(entry.width);
  const auto width = info_["text_encoder"]["dim"].get<std::size_t>();
  data::LatentSample sample;
  sample.latent.resize(scale_.channels() * values);
  sample.text.resize(static_cast<std::size_t>(entry.text_tokens) * width);
  Random(0, Purpose::synthetic, 0, random_key(entry.key)).fill_normal(sample.latent);
  Random(0, Purpose::synthetic, 1, random_key(entry.key)).fill_normal(sample.text);
  return sample;
}

}  // namespace vfm::train
