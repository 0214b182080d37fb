// The clips of a vfm-shard dataset as latents or codes that are encoded during training: by a
// frozen tokenizer, ahead of the step, on the thread that reads.
//
// Sizes follow from the dataset's index by the rule of data/clip_size.h, as in vfm-pack, so packs
// are planned without decoding. Each window of a clip (data.windows) is a sample; windows follow
// one another. Seed, epoch and key choose for each clip and epoch the first frame among the frames
// left over, the crop (data.crop) and the caption (data.captions). Validation has no epoch: it
// takes the middle and the first column. A clip with fewer frames than the index says counts as one
// that cannot be read. Ranks that share samples encode each of them once
// (train/data/shared_samples.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/held_json.h"
#include "base/json_fwd.h"
#include "data/clips.h"
#include "train/data/dataset.h"
#include "train/encoded/encoder_cost.h"
#include "train/encoded/encoders.h"

namespace vfm::train {

class EncodedClips final : public Dataset {
 public:
  /// Fits a recipe to encoded clips by their info(), index() and number of channels or codes.
  using Fit = void (*)(Recipe& recipe, const Dataset& data, const Encoders& encoders);

  /// Opens `split` of options.data with options.encoders. With options.gpu, clips are decoded but
  /// not encoded, and their latents are empty: the time of encoding is predicted for that GPU.
  /// Throws Error{usage}.
  EncodedClips(const RunOptions& options, const std::string& split, Fit fit_recipe);

  const data::SampleIndex& index() const override { return *index_; }
  const Json& info() const override { return info_; }
  void settle(dist::World& world, const Json& kept) override;
  std::unique_ptr<Dataset> other_split(const std::string& split) const override;
  bool reads_on_gpu() const override { return encoders_->device() == Device::cuda; }
  double device_bytes() const override;
  std::vector<std::string> remarks() const override;
  std::string fingerprint() const override;
  Json facts() const override;
  std::int64_t about_bytes(std::size_t i) const override;
  bool is_remote() const override { return clips_.is_remote(); }
  std::uint32_t shard_of(std::size_t i) const override;
  void fetch(std::span<data::SampleBytes> parts) const override;
  CleanSample read_fetched(std::size_t i, const std::string& bytes,
                           std::optional<SeenAt> seen) const override;

  std::vector<EncoderCost> costs() const;

 private:
  EncodedClips(const EncodedClips& other, const std::string& split);

  /// The window of a clip that a sample is made of. `available` is the clip's number of frames at
  /// the chosen rate.
  struct Place {
    std::uint32_t clip = 0, window = 0;
    std::int64_t available = 0;
  };

  void list(const std::string& split);
  void plan(std::size_t i, std::vector<data::Entry>& entries);
  void find_text_encoder(const std::string& split);
  void fit_model(Recipe& recipe) const override { fit_(recipe, *this, *encoders_); }
  CleanSample read_sample(std::size_t i, std::optional<SeenAt> seen) const override;
  CleanSample make(std::size_t i, std::optional<SeenAt> seen, const std::string* fetched) const;
  CleanSample encode(std::size_t i, std::optional<SeenAt> seen, const data::TextColumns& texts,
                     const std::string* fetched = nullptr) const;
  std::vector<float> text_of(std::size_t clip, data::SampleText text) const;
  models::LatentScale measure(dist::World& world) const;

  const RunOptions options_;
  const Fit fit_;
  const std::shared_ptr<Encoders> encoders_;
  data::ClipListing listing_;
  data::ClipSet clips_;
  data::PixelOptions clip_;
  std::unique_ptr<data::SampleIndex> index_;
  std::vector<Place> places_;      ///< by sample
  std::set<std::size_t> unknown_;  ///< clips whose sizes are not in the index
  HeldJson info_, text_identity_;  ///< text_identity_ is null without text
  int text_width_ = 0;  ///< width of the clips' texts, whether or not the model takes them

  mutable std::mutex mutex_;  // guards what follows
  // Samples that validation reads repeatedly, as long as there is room.
  mutable std::map<std::size_t, CleanSample> kept_;
  mutable std::size_t kept_bytes_ = 0;
  mutable std::optional<double> device_bytes_;
};

/// What made the embeddings that the first of these clips have; null: nothing that is known. Reads
/// their shards.
Json text_encoder_of(const data::ClipSet& clips, const data::TextColumns& texts);
/// The name under which data/given_texts.h may have that of a set that is opened so.
std::string text_encoder_given_as(const std::string& directory, const std::string& split,
                                  const data::ClipListing& listing);

/// Opens the clips that these options name; null without options.encoders. Throws Error{usage} if
/// the options of the encoders conflict.
std::unique_ptr<Dataset> open_encoded(const RunOptions& options, const std::string& split,
                                      EncodedClips::Fit fit);

}  // namespace vfm::train
