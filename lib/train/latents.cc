// SPDX-License-Identifier: Apache-2.0
#include "train/latents.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>

#include "base/error.h"

namespace vfm::train {

int text_width(const Json& info) {
  if (!info.contains("text_encoder") || !info["text_encoder"].is_object()) return 0;
  return static_cast<int>(get_integer(info["text_encoder"], "dim").value_or(0));
}

void fit_field(int& field, int of_data, const char* name) {
  if (field == 0) field = of_data;
  if (field != of_data)
    fail_usage(
        "'{}' is {}, but the data have {}; leave it out to follow the data, or, where it is the "
        "model's to begin from (--init), take data of its tokenizer and text encoder",
        name, field, of_data);
}

CleanSample take_sample(const data::Entry& entry, data::LatentSample sample, int text_width) {
  if (sample.text.size() !=
      static_cast<std::size_t>(entry.text_tokens) * static_cast<std::size_t>(text_width))
    fail("sample '{}' has {} text values, {} tokens of width {} were expected", entry.key,
         sample.text.size(), entry.text_tokens, text_width);
  const auto finite = [](float value) { return std::isfinite(value); };
  if (!std::ranges::all_of(sample.latent, finite) || !std::ranges::all_of(sample.text, finite))
    fail("sample '{}' holds values that are not finite", entry.key);
  return {entry.key,
          entry.frames,
          entry.height,
          entry.width,
          entry.fps,
          std::move(sample.latent),
          std::move(sample.codes),
          std::move(sample.text),
          {},
          sample.bytes};
}

PackedDataset::PackedDataset(const std::string& directory, const std::string& split)
    : set_(directory, split) {
  if (entries().empty()) fail_usage("'{}' has no samples in '{}'", directory, split);
}

Json trained_sizes(const std::vector<data::Entry>& entries) {
  using Size = std::array<int, 3>;
  Size largest{};
  // How often each occurs. A still says nothing about how long a video should be.
  std::map<Size, std::size_t> videos, stills;
  std::map<double, std::size_t> rates;
  for (const data::Entry& sample : entries) {
    const Size size{sample.frames, sample.height, sample.width};
    for (std::size_t i = 0; i < 3; ++i)
      largest[i] = std::max(largest[i], size[i]);
    ++(sample.frames > 1 ? videos : stills)[size];
    if (sample.fps > 0) ++rates[sample.fps];
  }
  std::vector<std::pair<std::size_t, double>> by_count;
  for (const auto& [rate, count] : rates)
    by_count.emplace_back(count, rate);
  std::ranges::sort(by_count, std::greater());
  std::vector<double> fps;
  for (const auto& [count, rate] : by_count)
    fps.push_back(rate);
  Size usual{};
  std::size_t most = 0;
  for (const auto& [size, count] : videos.empty() ? stills : videos)
    if (count >= most) usual = size, most = count;  // of equals the largest
  return {{"frames", largest[0]},
          {"height", largest[1]},
          {"width", largest[2]},
          {"fps", fps},
          {"usual", {{"frames", usual[0]}, {"height", usual[1]}, {"width", usual[2]}}}};
}

Json latent_facts(const Dataset& data, Json scale) {
  const auto info = [&](const char* name) { return data.info().value(name, Json()); };
  return {{"tokenizer", info("tokenizer")},
          {"text_encoder", info("text_encoder")},
          {"latent_scale", std::move(scale)},
          {"trained", trained_sizes(data.entries())}};
}

}  // namespace vfm::train
