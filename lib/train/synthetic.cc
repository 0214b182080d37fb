// Made-up latents (train/dataset.h).
// SPDX-License-Identifier: Apache-2.0
#include <charconv>

#include "base/error.h"
#include "base/philox.h"
#include "train/dataset.h"

namespace vfm::train {
namespace {

constexpr int kEach = 64;    // samples of a size
constexpr double kFps = 24;  // of those with several frames

}  // namespace

std::vector<std::array<int, 3>> Synthetic::parse_sizes(std::string_view text) {
  std::vector<std::array<int, 3>> sizes;
  const char* at = text.data();
  const char* const end = at + text.size();
  const auto refuse = [&] {
    fail_usage("'{}' is no list of latent sizes, FRAMESxHEIGHTxWIDTH,...", text);
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

Dataset::Dataset(const Synthetic& synthetic) {
  for (int i = 0; i < kEach; ++i) {
    for (const auto& [frames, height, width] : synthetic.sizes) {
      data::Entry& entry = entries_.emplace_back();
      entry.key = fmt::format("synthetic-{:05}", entries_.size());
      entry.frames = frames;
      entry.height = height;
      entry.width = width;
      entry.fps = frames > 1 ? kFps : 0;
      entry.text_tokens = synthetic.text_tokens;
    }
  }
  const auto channels = static_cast<std::size_t>(synthetic.channels);
  info_ = {{"version", 1},
           {"tokenizer", nullptr},
           {"text_encoder", {{"dim", synthetic.text_width}}},
           {"channels", channels},
           {"mean", std::vector<double>(channels, 0.0)},
           {"std", std::vector<double>(channels, 1.0)}};
  scale_ = models::LatentScale::from_json(info_, "made-up latents");
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
