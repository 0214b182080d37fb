// Latents as training sees them: the recipe fitted to the data, lengths, clean samples.
// Thread-safety: read() and the const members from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "data/latents.h"
#include "models/edm.h"
#include "train/diffusion.h"
#include "train/recipe.h"

namespace vfm::train {

class Dataset {
 public:
  /// Opens `split` of the latents in `directory`. Throws Error{usage} if there are none.
  /// Latents are whitened by degree `whitening` (models::LatentScale::whitened).
  Dataset(const std::string& directory, const std::string& split, double whitening = 1);

  /// Fills what the recipe leaves to the data (channels, text width), and checks that every sample
  /// fits: channels, patch size, position tables, capacity of a pack. Throws Error{usage} naming
  /// the field and the first sample that does not.
  void fit(Recipe& recipe) const;

  std::size_t size() const { return set_.entries().size(); }
  const data::Entry& entry(std::size_t i) const { return set_.entries()[i]; }
  const std::vector<data::Entry>& entries() const { return set_.entries(); }
  const Json& info() const { return set_.info(); }
  const models::LatentScale& scale() const { return scale_; }

  /// Visual tokens of each sample.
  std::vector<std::int64_t> tokens(const models::DitConfig& config) const;
  /// Latents in model units, and text. Throws Error naming the key: unreadable, or not finite.
  CleanSample read(std::size_t i) const;
  /// Names the data: a hash of the tokenizer, the statistics and every sample's key and size.
  std::string fingerprint() const;
  /// {"frames":T,"height":H,"width":W,"fps":[...]}: the largest latent and the frame rates.
  Json trained_sizes() const;

 private:
  data::LatentSet set_;
  models::LatentScale scale_;
};

/// Tokens of a sample of these sizes.
std::int64_t token_count(const data::Entry& entry, const models::DitConfig& config);

}  // namespace vfm::train
