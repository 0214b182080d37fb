// SPDX-License-Identifier: Apache-2.0
#include "train/tokenizer/clips.h"

#include <algorithm>

#include "base/error.h"
#include "base/json.h"
#include "base/philox.h"
#include "data/clips.h"

namespace vfm::train {
namespace {

data::PixelOptions clip_options(const Recipe& recipe) {
  data::PixelOptions options;
  options.frames = recipe.data.frames;
  options.square = recipe.data.size;
  options.shorter_side = recipe.data.shorter_side;
  options.seed = recipe.train.seed;
  options.time_step = recipe.model.autoencoder.temporal_compression_ratio;
  return options;
}

class ClipData final : public Dataset {
 public:
  ClipData(const std::string& directory, const std::string& split, const Recipe& recipe)
      : clips_(directory, split), options_(clip_options(recipe)) {
    const models::CosmosConfig& autoencoder = recipe.model.autoencoder;
    const int side = recipe.data.size / autoencoder.spatial_compression_ratio;
    const int frames = 1 + (recipe.data.frames - 1) / autoencoder.temporal_compression_ratio;
    std::vector<data::Entry> entries;
    for (const data::StoredClip& clip : clips_.clips()) {
      data::Entry& entry = entries.emplace_back();
      entry.key = clip.key;
      entry.row = clip.row;
      entry.frames = clip.still ? 1 : frames;
      entry.height = entry.width = side;
    }
    if (entries.empty()) fail_usage("'{}' has no clips in '{}'", directory, split);
    index_ = data::list_index(std::move(entries));
  }
  const data::SampleIndex& index() const override { return *index_; }
  const Json& info() const override { return clips_.info(); }
  std::int64_t about_bytes(std::size_t i) const override {
    return is_remote() ? clips_.clips()[i].bytes : Dataset::about_bytes(i);
  }
  bool is_remote() const override { return clips_.is_remote(); }
  std::uint32_t shard_of(std::size_t i) const override {
    return static_cast<std::uint32_t>(clips_.clips()[i].shard);
  }
  void fetch(std::span<data::SampleBytes> parts) const override { clips_.fetch(parts); }
  CleanSample read_fetched(std::size_t i, const std::string& bytes,
                           std::optional<SeenAt> seen) const override {
    return make(i, seen, &bytes);
  }

 private:
  void fit_model(Recipe& /*recipe*/) const override {}

  CleanSample read_sample(std::size_t i, std::optional<SeenAt> seen) const override {
    return make(i, seen, nullptr);
  }

  CleanSample make(std::size_t i, std::optional<SeenAt> seen, const std::string* fetched) const {
    data::PixelOptions options = options_;
    if (seen) {
      options.crop = data::CropMode::random;
      options.step = seen->step;
      options.again = seen->again;
    }
    data::ClipPixels clip = clips_.read(i, options, fetched);
    CleanSample sample{entry(i).key, clip.frames, clip.height, clip.width, clip.fps, {}, {}, {}};
    sample.pixels = std::move(clip.pixels);
    sample.read_bytes = clip.bytes;
    return sample;
  }

  data::ClipSet clips_;
  data::PixelOptions options_;
  std::unique_ptr<data::SampleIndex> index_;
};

class MadeUpClips final : public Dataset {
 public:
  MadeUpClips(const SampleSizes& sizes, const models::CosmosConfig& tokenizer)
      : time_factor_(tokenizer.temporal_compression_ratio),
        space_factor_(tokenizer.spatial_compression_ratio),
        info_({{"clips", nullptr}}) {
    std::vector<data::Entry> entries = synthetic_entries(sizes);
    for (data::Entry& entry : entries) {
      if (entry.height != entry.width || entry.height % space_factor_ != 0 ||
          (entry.frames - 1) % time_factor_ != 0)
        fail_usage(
            "made-up clips of {}x{}x{}: this tokenizer trains on 1 + k * {} frames of squares with "
            "sides that are multiples of {}",
            entry.frames, entry.height, entry.width, time_factor_, space_factor_);
      entry.frames = 1 + (entry.frames - 1) / time_factor_;
      entry.height = entry.width = entry.height / space_factor_;
    }
    index_ = data::list_index(std::move(entries));
  }
  const data::SampleIndex& index() const override { return *index_; }
  const Json& info() const override { return info_; }

 private:
  void fit_model(Recipe& recipe) const override {
    recipe.data.frames = recipe.data.size = 1;
    for (const data::Form& form : index_->forms()) {
      recipe.data.frames = std::max(recipe.data.frames, 1 + (form.frames - 1) * time_factor_);
      recipe.data.size = std::max(recipe.data.size, form.height * space_factor_);
    }
  }

  CleanSample read_sample(std::size_t i, std::optional<SeenAt> /*seen*/) const override {
    const data::Entry entry = index_->entry(i);
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

  int time_factor_, space_factor_;  // pixels of a latent pixel
  std::unique_ptr<data::SampleIndex> index_;
  Json info_;
};

}  // namespace

std::unique_ptr<Dataset> open_clips(const std::string& directory, const std::string& split,
                                    const Recipe& recipe) {
  return std::make_unique<ClipData>(directory, split, recipe);
}

std::unique_ptr<Dataset> make_up_clips(const SampleSizes& sizes,
                                       const models::CosmosConfig& tokenizer) {
  return std::make_unique<MadeUpClips>(sizes, tokenizer);
}

}  // namespace vfm::train
