// SPDX-License-Identifier: Apache-2.0
#include "train/diffusion/data.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/philox.h"
#include "data/latents.h"
#include "io/file.h"
#include "train/data/packed_folder.h"
#include "train/recipe/recipe_file.h"

namespace vfm::train {
namespace {

/// A statistics table that does not fit is the fault of the folder: found before any work.
models::LatentScale read_scale(const Json& info, const std::string& directory) {
  const std::string what = fmt::format("'{}'", io::join_path(directory, "latents.json"));
  return as_usage([&] { return models::LatentScale::from_json(info, what); });
}

}  // namespace

void fit_network(Recipe& recipe, const Dataset& data, int channels) {
  models::NetworkConfig& dit = recipe.model.dit;
  const bool given = recipe.diffusion.video_to_world();
  if (given && dit.in_channels != 0 && dit.in_channels != channels + 1)
    fail_usage(
        "'model.in_channels' is {}, must be {}: the channels of the data, and one that marks the "
        "frames of 'diffusion.condition_frames'",
        dit.in_channels, channels + 1);
  // A model with a mark may be trained without given frames.
  const bool marks = given || (dit.video_to_world() && dit.out_channels == channels);
  fit_field(dit.in_channels, channels + (marks ? 1 : 0), "model.in_channels");
  fit_field(dit.out_channels, channels, "model.out_channels");
  if (const int width = text_width(data.info()); width > 0)
    fit_field(dit.text_embed_dim, width, "model.text_embed_dim");
  else if (dit.text_embed_dim == 0)
    dit.text_embed_dim = 1;  // no text anywhere: every sample gets one zero token
  dit.validate();
  check_forms(data.index(), [&](const data::Entry& sample) {
    const int size[3] = {sample.frames, sample.height, sample.width};
    for (std::size_t axis = 0; axis < 3; ++axis) {
      if (size[axis] % dit.patch_size[axis] != 0)
        fail_usage(
            "sample '{}' is {} x {} x {} (frames, height, width of the latent), no multiple: {}",
            sample.key, size[0], size[1], size[2], describe_setting(recipe, "model.patch_size"));
      if (size[axis] > dit.max_size[axis])
        fail_usage(
            "sample '{}' is {} x {} x {} (frames, height, width of the latent), too large: {}",
            sample.key, size[0], size[1], size[2], describe_setting(recipe, "model.max_size"));
    }
  });
}

namespace {

class LatentData final : public PackedDataset, public ScaledLatents {
 public:
  LatentData(const std::string& directory, const std::string& split, const DiffusionRecipe& recipe,
             const std::optional<models::LatentScale>& scale)
      : PackedDataset(directory, split), process_(recipe.process) {
    if (set().vocabulary() == 0) scale_ = read_scale(info(), directory).whitened(recipe.whitening);
    if (scale && scale->channels() == scale_.channels()) scale_ = *scale;
  }
  Json facts() const override { return latent_facts(*this, scale_.to_json()); }
  void set_scale(models::LatentScale scale) override { scale_ = std::move(scale); }

 private:
  void fit_model(Recipe& recipe) const override {
    if (set().vocabulary() > 0)
      fail_usage(
          "these latents are discrete: set 'model.type' to autoregressive, or pack them with a "
          "continuous tokenizer");
    fit_network(recipe, *this, static_cast<int>(scale_.channels()));
  }

  CleanSample clean(std::size_t i, data::LatentSample data) const override {
    const data::Entry sample = sizes(i);
    const std::size_t expected =
        scale_.channels() * static_cast<std::size_t>(sample.frames * sample.height * sample.width);
    if (data.latent.size() != expected)
      fail("sample '{}' has {} latent values, its sizes make {}", data.key, data.latent.size(),
           expected);
    CleanSample clean = take_sample(sample, std::move(data), text_width(info()));
    scale_.to_model(clean.x0, sample.frames, process_);
    return clean;
  }

  models::Process process_;
  models::LatentScale scale_;
};

class MadeUpData final : public Dataset {
 public:
  explicit MadeUpData(const MadeUpLatents& options) : process_(options.process) {
    std::vector<data::Entry> entries = synthetic_entries(options.sizes);
    for (data::Entry& entry : entries)
      entry.text_tokens = options.text_tokens;
    index_ = data::list_index(std::move(entries));
    const auto channels = static_cast<std::size_t>(options.channels);
    info_ = {{"version", 1},
             {"tokenizer", nullptr},
             {"text_encoder", {{"dim", options.text_width}}},
             {"channels", channels},
             {"mean", std::vector<double>(channels, 0.0)},
             {"std", std::vector<double>(channels, 1.0)}};
    scale_ = models::LatentScale::from_json(info_, "made-up latents");
  }
  const data::SampleIndex& index() const override { return *index_; }
  const Json& info() const override { return info_; }

 private:
  void fit_model(Recipe& recipe) const override {
    fit_network(recipe, *this, static_cast<int>(scale_.channels()));
  }

  CleanSample read_sample(std::size_t i, std::optional<SeenAt> /*seen*/) const override {
    const data::Entry entry = index_->entry(i);
    CleanSample sample{entry.key, entry.frames, entry.height, entry.width, entry.fps, {}, {}, {}};
    const auto values = static_cast<std::size_t>(entry.frames) *
                        static_cast<std::size_t>(entry.height) *
                        static_cast<std::size_t>(entry.width);
    sample.x0.resize(scale_.channels() * values);
    sample.text.resize(static_cast<std::size_t>(entry.text_tokens) *
                       static_cast<std::size_t>(text_width(info_)));
    Random(0, Purpose::synthetic, 0, random_key(entry.key)).fill_normal(sample.x0);
    Random(0, Purpose::synthetic, 1, random_key(entry.key)).fill_normal(sample.text);
    scale_.to_model(sample.x0, entry.frames, process_);
    return sample;
  }

  models::Process process_;
  std::unique_ptr<data::SampleIndex> index_;
  Json info_;
  models::LatentScale scale_;
};

/// Mean of the numbers of a sample's latent, by channels.
double mean_places(const data::SampleIndex& index) {
  double places = 0;
  for (const data::Form& form : index.forms())
    places += static_cast<double>(form.count) * form.frames * form.height * form.width;
  return places / static_cast<double>(index.size());
}

/// Of the sum of so much of each: moments add up.
models::LatentScale mixed_scale(const std::vector<models::LatentScale>& scales,
                                const std::vector<double>& parts) {
  models::LatentScale mixed = *std::ranges::max_element(scales, {}, &models::LatentScale::frames);
  const auto frames = static_cast<std::size_t>(mixed.frames);
  for (std::size_t i = 0; i < mixed.mean.size(); ++i) {
    double all = 0, sum = 0, squares = 0;
    for (std::size_t k = 0; k < scales.size(); ++k) {
      const auto own = static_cast<std::size_t>(scales[k].frames);
      const std::size_t at = i / frames * own + std::min(i % frames, own - 1);
      const double mean = scales[k].mean[at], deviation = scales[k].std[at];
      all += parts[k];
      sum += parts[k] * mean;
      squares += parts[k] * (deviation * deviation + mean * mean);
    }
    mixed.mean[i] = sum / all;
    mixed.std[i] = std::sqrt(std::max(0.0, squares / all - mixed.mean[i] * mixed.mean[i]));
  }
  return mixed;
}

}  // namespace

void share_scale(std::span<const std::unique_ptr<Dataset>> folders,
                 std::span<const DataSource> sources, double whitening) {
  std::vector<models::LatentScale> scales;
  std::vector<double> parts;
  for (std::size_t i = 0; i < folders.size(); ++i) {
    if (!folders[i]->info().contains("mean")) return;  // discrete: refused when they are fitted
    scales.push_back(read_scale(folders[i]->info(), sources[i].name));
    if (scales[i].channels() != scales[0].channels())
      fail_usage("latents.json of '{}' has statistics of {} channels, that of '{}' of {}",
                 sources[0].name, scales[0].channels(), sources[i].name, scales[i].channels());
    parts.push_back(sources[i].share * mean_places(folders[i]->index()));
  }
  const bool same = std::ranges::all_of(scales, [&](const models::LatentScale& scale) {
    return scale.to_json() == scales[0].to_json();
  });
  const models::LatentScale scale = same ? scales[0] : mixed_scale(scales, parts);
  for (const std::unique_ptr<Dataset>& folder : folders)
    dynamic_cast<ScaledLatents&>(*folder).set_scale(scale.whitened(whitening));
}

std::unique_ptr<Dataset> open_latents(const std::string& directory, const std::string& split,
                                      const DiffusionRecipe& recipe,
                                      const std::optional<models::LatentScale>& scale) {
  return std::make_unique<LatentData>(directory, split, recipe, scale);
}

std::unique_ptr<Dataset> make_up_latents(const MadeUpLatents& options) {
  return std::make_unique<MadeUpData>(options);
}

}  // namespace vfm::train
