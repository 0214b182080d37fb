// The clips of a dataset that vfm-shard wrote, as latents or codes that are made of them while
// others are trained on: by a frozen tokenizer, ahead of the step, on the thread that reads.
//
// Sizes follow from the dataset's index by the rule of data/clip_size.h, as vfm-pack's do, so packs
// are planned without decoding. Windows of a clip follow one another (data.windows), each a sample.
// Each epoch they begin at another frame, as far as frames are left over, another place of the
// picture is taken (data.crop), and another of its captions (data.captions), by seed, epoch and the
// clip's key; without an epoch, for validation, the middle and the first column. A clip that gives
// fewer frames than the index says cannot be read. Ranks that share samples encode each once,
// between them (train/data/shared_samples.h).
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
  /// Fits a recipe to such data: their info(), index() and number of channels or codes.
  using Fit = void (*)(Recipe& recipe, const Dataset& data, const Encoders& encoders);

  /// `split` of options.data, by options.encoders. With options.gpu clips are decoded, and encoding
  /// is left to that GPU, which need not be there: latents are empty then. Throws Error{usage}.
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

  std::vector<EncoderCost> costs() const;

 private:
  EncodedClips(const EncodedClips& other, const std::string& split);

  /// What a sample is made of: a window of a clip, of whose frames so many are there at the rate.
  struct Place {
    std::uint32_t clip = 0, window = 0;
    std::int64_t available = 0;
  };

  void list();
  void plan(std::size_t i, std::vector<data::Entry>& entries);
  void find_text_encoder();
  void fit_model(Recipe& recipe) const override { fit_(recipe, *this, *encoders_); }
  CleanSample read_sample(std::size_t i, std::optional<SeenAt> seen) const override;
  CleanSample encode(std::size_t i, std::optional<SeenAt> seen,
                     const data::TextColumns& texts) const;
  std::vector<float> text_of(std::size_t clip, data::SampleText text) const;
  models::LatentScale measure(dist::World& world) const;

  const RunOptions options_;
  const Fit fit_;
  const std::shared_ptr<Encoders> encoders_;
  data::ClipListing listing_;
  data::ClipSet clips_;
  data::PixelOptions clip_;
  std::unique_ptr<data::SampleIndex> index_;
  std::vector<Place> places_;      ///< of the samples
  std::set<std::size_t> unknown_;  ///< clips whose sizes the index does not say
  HeldJson info_, text_identity_;  ///< the latter null where there is no text
  int text_width_ = 0;             ///< of the clips' texts, whether they are taken or not

  mutable std::mutex mutex_;  // guards what follows
  // What validation reads again and again, as far as there is room.
  mutable std::map<std::size_t, CleanSample> kept_;
  mutable std::size_t kept_bytes_ = 0;
  mutable std::optional<double> device_bytes_;
};

/// What these options ask for: such clips, or null without options.encoders. Throws Error{usage}
/// for encoders' options that do not go together.
std::unique_ptr<Dataset> open_encoded(const RunOptions& options, const std::string& split,
                                      EncodedClips::Fit fit);

}  // namespace vfm::train
