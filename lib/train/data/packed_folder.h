// What the folders that vfm-pack writes have in common for training, of latents and of codes:
// texts, sizes, and what made them. Thread-safety: pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "data/latents.h"
#include "train/data/dataset.h"

namespace vfm::train {

/// Text width of the data, by their latents.json; 0 if they have no text.
int text_width(const Json& info);

/// A field of a model that comes from the data, where it is 0; throws Error{usage} if it is
/// another.
void fit_field(int& field, int of_data, const char* name);

/// That the texts of the data in `directory` are not for the model to begin from, which has none.
std::string text_left_aside(const std::string& directory);

/// What was read of a sample of these sizes, as it is. Throws Error naming the key where text or
/// latent are not finite, or the text has another size than that.
CleanSample take_sample(const data::Entry& sizes, data::LatentSample sample, int text_width);

/// The samples of such a folder, whole or in pieces.
class PackedDataset : public Dataset {
 public:
  /// Throws Error{usage} if the split has none.
  PackedDataset(const std::string& directory, const std::string& split);

  const data::SampleIndex& index() const override { return set_.index(); }
  const Json& info() const override { return set_.info(); }
  std::int64_t about_bytes(std::size_t i) const override { return set_.about_bytes(i); }
  bool has_pieces() const override { return true; }
  std::string read_piece(std::size_t i, std::int64_t begin, std::int64_t end) const override {
    return set_.read_piece(i, begin, end);
  }
  CleanSample put_together(std::size_t i, std::string_view bytes) const override {
    return clean(i, set_.put_together(i, bytes));
  }

 protected:
  const data::LatentSet& set() const { return set_; }

 private:
  CleanSample read_sample(std::size_t i, std::optional<SeenAt> /*seen*/) const override {
    return clean(i, set_.read(i));
  }
  /// What was read of sample `i`, for the model. Throws Error for what does not fit its entry.
  virtual CleanSample clean(std::size_t i, data::LatentSample data) const = 0;

  const data::LatentSet set_;
};

/// {"frames":T,"height":H,"width":W,"fps":[...],"usual":{...}}: the largest latent, the frame
/// rates, and the size that is most frequent.
Json trained_sizes(std::span<const data::Form> forms);

/// Dataset::facts() of such data, `scale` being the latents'.
Json latent_facts(const Dataset& data, Json scale);

}  // namespace vfm::train
