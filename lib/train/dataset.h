// Latents, or clips for a tokenizer, as training sees them: the recipe fitted to the data, lengths,
// clean samples.
// Thread-safety: read() and the const members from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "data/clips.h"
#include "data/latents.h"
#include "models/dit/edm.h"
#include "train/recipe.h"
#include "train/sample.h"

namespace vfm::train {

/// Made-up latents, or clips, to measure a machine without data: normal numbers, of these sizes in
/// turn.
struct Synthetic {
  std::vector<std::array<int, 3>> sizes;  ///< frames, height, width of the latents, or the pixels
  int channels = 16, text_tokens = 512, text_width = 1024;

  /// "16x88x160" or "1x64x64,8x32x32". Throws Error{usage} for anything else.
  static std::vector<std::array<int, 3>> parse_sizes(std::string_view text);
};

class Dataset {
 public:
  /// Opens `split` of the latents in `directory`. Throws Error{usage} if there are none.
  /// Latents are seen in the scale of the model that the run begins from, if there is one and it
  /// has as many channels (fit() refuses others); else in their own, whitened by degree `whitening`
  /// (models::LatentScale::whitened).
  Dataset(const std::string& directory, const std::string& split, double whitening = 1,
          const std::optional<models::LatentScale>& scale = {});

  /// Opens `split` of the clips in `directory`, a dataset of vfm-shard, for the recipe's tokenizer.
  /// Throws Error{usage} if there are none.
  Dataset(const std::string& directory, const std::string& split, const Recipe& recipe);

  /// Samples of made-up data; 64 of each size.
  explicit Dataset(const Synthetic& synthetic);
  /// Clips of made-up pixels for this tokenizer. Throws Error{usage} for sizes that are no squares,
  /// or that it cannot encode.
  Dataset(const Synthetic& synthetic, const models::CosmosConfig& tokenizer);

  /// Fills what the recipe leaves to the data (channels or vocabulary, text width; of made-up clips
  /// the largest size), and checks that every sample fits: channels, patch size, position tables,
  /// capacity of a pack. Throws Error{usage} naming the field and the first sample that does not.
  void fit(Recipe& recipe) const;

  std::size_t size() const { return entries().size(); }
  const data::Entry& entry(std::size_t i) const { return entries()[i]; }
  /// Of clips the latents' sizes as the recipe has them; a short clip has fewer frames.
  const std::vector<data::Entry>& entries() const { return set_ ? set_->entries() : entries_; }
  const Json& info() const { return set_ ? set_->info() : info_; }
  /// Of continuous latents.
  const models::LatentScale& scale() const { return scale_; }
  /// Of discrete latents the number of codes; 0: they are continuous.
  int vocabulary() const { return set_ ? set_->vocabulary() : 0; }

  /// Visual tokens of each sample.
  std::vector<std::int64_t> tokens(const ModelRecipe& model) const;
  /// Latents in model units, or codes; and text. Or pixels: at a place and time that are random for
  /// each `step`, or in the middle without one. Throws Error naming the key: unreadable, or not
  /// finite.
  CleanSample read(std::size_t i, std::optional<std::uint32_t> step = {}) const;
  /// Names the data: a hash of the tokenizer, the statistics and every sample's key and size.
  std::string fingerprint() const;
  /// {"frames":T,"height":H,"width":W,"fps":[...]}: the largest latent and the frame rates.
  Json trained_sizes() const;

 private:
  void fit_network(Recipe& recipe) const;
  void fit_decoder(models::DecoderConfig& decoder) const;
  void fit_made_up(DataRecipe& recipe) const;
  data::LatentSample make_up(const data::Entry& entry) const;
  CleanSample make_up_clip(const data::Entry& entry) const;
  CleanSample read_clip(std::size_t i, std::optional<std::uint32_t> step) const;

  std::optional<data::LatentSet> set_;
  std::optional<data::ClipSet> clips_;
  data::ClipOptions clip_options_;
  int time_factor_ = 0, space_factor_ = 0;  // of made-up clips: pixels of a latent pixel
  std::vector<data::Entry> entries_;        // of clips and made-up data
  Json info_;
  models::LatentScale scale_;
};

/// Tokens of a sample of these sizes.
std::int64_t token_count(const data::Entry& entry, const ModelRecipe& model);

}  // namespace vfm::train
