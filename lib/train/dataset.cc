// SPDX-License-Identifier: Apache-2.0
#include "train/dataset.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>

#include "base/error.h"
#include "base/hash.h"
#include "io/file.h"
#include "train/recipe_file.h"

namespace vfm::train {
namespace {

/// A statistics table that does not fit is the fault of the folder: found before any work.
models::LatentScale read_scale(const Json& info, const std::string& directory) {
  const std::string what = fmt::format("'{}'", io::join_path(directory, "latents.json"));
  return as_usage([&] { return models::LatentScale::from_json(info, what); });
}

/// Text width of the data; 0 if it has no text.
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

}  // namespace

std::int64_t token_count(const data::Entry& entry, const ModelRecipe& model) {
  return data::token_count(entry, model.patch());
}

Dataset::Dataset(const std::string& directory, const std::string& split, double whitening,
                 const std::optional<models::LatentScale>& scale)
    : set_(std::in_place, directory, split) {
  if (vocabulary() == 0) scale_ = read_scale(set_->info(), directory).whitened(whitening);
  if (scale && scale->channels() == scale_.channels()) scale_ = *scale;
  if (entries().empty()) fail_usage("'{}' has no samples in '{}'", directory, split);
}

Dataset::Dataset(const std::string& directory, const std::string& split, const Recipe& recipe)
    : clips_(std::in_place, directory, split), clip_options_(recipe.clip()), info_(clips_->info()) {
  const models::CosmosConfig& autoencoder = recipe.model.autoencoder;
  const int side = recipe.data.size / autoencoder.spatial_compression_ratio;
  const int frames = 1 + (recipe.data.frames - 1) / autoencoder.temporal_compression_ratio;
  for (const data::Clip& clip : clips_->clips()) {
    data::Entry& entry = entries_.emplace_back();
    entry.key = clip.key;
    entry.row = clip.row;
    entry.frames = clip.still ? 1 : frames;
    entry.height = entry.width = side;
  }
  if (entries_.empty()) fail_usage("'{}' has no clips in '{}'", directory, split);
}

void Dataset::fit_decoder(models::DecoderConfig& decoder) const {
  if (vocabulary() == 0)
    fail_usage(
        "'model.type' autoregressive is for discrete latents, and these are continuous: pack them "
        "with a discrete tokenizer, such as builtin:fsq");
  fit_field(decoder.vocabulary, vocabulary(), "model.vocabulary");
  fit_field(decoder.text_embed_dim, text_width(info()), "model.text_embed_dim");
  decoder.validate();
}

void Dataset::fit_network(Recipe& recipe) const {
  if (vocabulary() > 0)
    fail_usage(
        "these latents are discrete: set 'model.type' to autoregressive, or pack them with a "
        "continuous tokenizer");
  models::NetworkConfig& dit = recipe.model.dit;
  const int channels = static_cast<int>(scale_.channels());
  const bool given = recipe.diffusion.video_to_world();
  if (given && dit.in_channels != 0 && dit.in_channels != channels + 1)
    fail_usage(
        "'model.in_channels' is {}, must be {}: those of the data, and one that marks the frames "
        "of 'diffusion.condition_frames'",
        dit.in_channels, channels + 1);
  // A model with a mark may be trained without given frames.
  const bool marks = given || (dit.video_to_world() && dit.out_channels == channels);
  fit_field(dit.in_channels, channels + (marks ? 1 : 0), "model.in_channels");
  fit_field(dit.out_channels, channels, "model.out_channels");
  if (const int width = text_width(info()); width > 0)
    fit_field(dit.text_embed_dim, width, "model.text_embed_dim");
  else if (dit.text_embed_dim == 0)
    dit.text_embed_dim = 1;  // no text anywhere: every sample gets one zero token
  dit.validate();
  for (const data::Entry& sample : entries()) {
    const int size[3] = {sample.frames, sample.height, sample.width};
    for (std::size_t axis = 0; axis < 3; ++axis) {
      if (size[axis] % dit.patch_size[axis] != 0)
        fail_usage(
            "sample '{}' is {} x {} x {} (frames, height, width of the latent), no multiple: {}",
            sample.key, size[0], size[1], size[2], told(recipe, "model.patch_size"));
      if (size[axis] > dit.max_size[axis])
        fail_usage(
            "sample '{}' is {} x {} x {} (frames, height, width of the latent), too large: {}",
            sample.key, size[0], size[1], size[2], told(recipe, "model.max_size"));
    }
  }
}

void Dataset::fit(Recipe& recipe) const {
  if (recipe.model.autoregressive())
    fit_decoder(recipe.model.decoder);
  else if (!recipe.model.tokenizer())
    fit_network(recipe);
  else if (space_factor_ > 0)
    fit_made_up(recipe.data);
  for (const data::Entry& sample : entries())
    if (token_count(sample, recipe.model) > recipe.data.tokens)
      fail_usage("sample '{}' has {} tokens, more than a pack holds: {}, must be at least that",
                 sample.key, token_count(sample, recipe.model), told(recipe, "data.tokens"));
}

std::vector<std::int64_t> Dataset::tokens(const ModelRecipe& model) const {
  std::vector<std::int64_t> lengths;
  for (const data::Entry& sample : entries())
    lengths.push_back(token_count(sample, model));
  return lengths;
}

CleanSample Dataset::read_clip(std::size_t i, std::optional<std::uint32_t> step) const {
  data::ClipOptions options = clip_options_;
  if (step) options.crop = data::CropMode::random, options.step = *step;
  data::ClipPixels clip = clips_->read(i, options);
  CleanSample sample{entry(i).key, clip.frames, clip.height, clip.width, clip.fps, {}, {}, {}};
  sample.pixels = std::move(clip.pixels);
  return sample;
}

CleanSample Dataset::read(std::size_t i, std::optional<std::uint32_t> step) const {
  if (clips_) return read_clip(i, step);
  const data::Entry& sample = entry(i);
  if (space_factor_ > 0) return make_up_clip(sample);
  data::LatentSample data = set_ ? set_->read(i) : make_up(sample);
  const auto places = static_cast<std::size_t>(sample.frames * sample.height * sample.width);
  const std::size_t expected = scale_.channels() * places;
  if (vocabulary() > 0 && data.codes.size() != places)
    fail("sample '{}' has {} codes, its sizes make {}", sample.key, data.codes.size(), places);
  if (vocabulary() == 0 && data.latent.size() != expected)
    fail("sample '{}' has {} latent values, its sizes make {}", sample.key, data.latent.size(),
         expected);
  if (data.text.size() !=
      static_cast<std::size_t>(sample.text_tokens) * static_cast<std::size_t>(text_width(info())))
    fail("sample '{}' has {} text values, {} tokens of width {} were expected", sample.key,
         data.text.size(), sample.text_tokens, text_width(info()));
  const auto finite = [](float value) { return std::isfinite(value); };
  if (!std::all_of(data.latent.begin(), data.latent.end(), finite) ||
      !std::all_of(data.text.begin(), data.text.end(), finite))
    fail("sample '{}' holds values that are not finite", sample.key);
  if (vocabulary() == 0) scale_.to_model(data.latent, sample.frames);
  return {sample.key, sample.frames,          sample.height,         sample.width,
          sample.fps, std::move(data.latent), std::move(data.codes), std::move(data.text),
          {}};
}

std::string Dataset::fingerprint() const {
  Hasher hasher;
  hasher.update(dump_json(info()));
  for (const data::Entry& sample : entries())
    hasher.update(fmt::format("\n{} {} {} {} {} {}", sample.key, sample.frames, sample.height,
                              sample.width, sample.fps, sample.text_tokens));
  return hasher.hex128();
}

Json Dataset::trained_sizes() const {
  using Size = std::array<int, 3>;
  Size largest{};
  // How often each occurs. A still says nothing about how long a video should be.
  std::map<Size, std::size_t> videos, stills;
  std::map<double, std::size_t> rates;
  for (const data::Entry& sample : entries()) {
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

}  // namespace vfm::train
