// SPDX-License-Identifier: Apache-2.0
#include "train/data/packed_folder.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>

#include "base/error.h"
#include "base/json.h"
#include "data/given_texts.h"
#include "io/file.h"

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

std::string text_left_aside(const std::string& directory) {
  return fmt::format(
      "the model to begin from has no text, so the text of '{}' is left aside: the trained model "
      "takes no prompts",
      directory);
}

CleanSample take_sample(const data::Entry& sizes, data::LatentSample sample, int text_width) {
  if (sample.text.size() !=
      static_cast<std::size_t>(sizes.text_tokens) * static_cast<std::size_t>(text_width))
    fail("sample '{}' has {} text values, {} tokens of width {} were expected", sample.key,
         sample.text.size(), sizes.text_tokens, text_width);
  const auto finite = [](float value) { return std::isfinite(value); };
  if (!std::ranges::all_of(sample.latent, finite) || !std::ranges::all_of(sample.text, finite))
    fail("sample '{}' holds values that are not finite", sample.key);
  return {std::move(sample.key),
          sizes.frames,
          sizes.height,
          sizes.width,
          sizes.fps,
          std::move(sample.latent),
          std::move(sample.codes),
          std::move(sample.text),
          {},
          sample.bytes};
}

/// The folder, unless it is one of another kind, of which there is more to say.
static const std::string& latents_in(const std::string& directory) {
  const auto has = [&](const char* name) {
    return data::exists_or_given(io::join_path(directory, name));
  };
  if (!has("latents.json") && has("dataset.json"))
    fail_usage(
        "'{}' is a dataset of clips, not of latents: --tokenizer encodes them while training, or "
        "vfm-pack before",
        directory);
  return directory;
}

PackedDataset::PackedDataset(const std::string& directory, const std::string& split)
    : set_(latents_in(directory), split) {
  if (size() == 0) fail_usage("'{}' has no samples in '{}'", directory, split);
}

Json trained_sizes(std::span<const data::Form> forms) {
  using Size = std::array<int, 3>;
  Size largest{};
  // How often each occurs. A still says nothing about how long a video should be.
  std::map<Size, std::size_t> videos, stills;
  std::map<double, std::size_t> rates;
  for (const data::Form& form : forms) {
    const Size size{form.frames, form.height, form.width};
    for (std::size_t i = 0; i < 3; ++i)
      largest[i] = std::max(largest[i], size[i]);
    (form.frames > 1 ? videos : stills)[size] += form.count;
    if (form.fps > 0) rates[form.fps] += form.count;
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
          {"trained", trained_sizes(data.index().forms())}};
}

}  // namespace vfm::train
