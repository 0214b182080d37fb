// Common parts of training on the folders that vfm-pack writes, of latents and of codes: texts,
// sizes, tokenizer and text encoder. Thread-safety: pure.
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

/// Text width of the data by their latents.json; 0 if they have no text.
int text_width(const Json& info);

/// Sets a model's field to the data's value if the field is 0. Throws Error{usage} if it has
/// another value.
void fit_field(int& field, int of_data, const char* name);

/// A remark: the texts of the data in `directory` are not used, as the model to begin from has no
/// text.
std::string text_left_aside(const std::string& directory);

/// Makes a sample of what was read, with these sizes and without scaling. Throws Error naming the
/// key if text or latent are not finite, or the text has another size.
CleanSample take_sample(const data::Entry& sizes, data::LatentSample sample, int text_width);

/// The samples of a folder from vfm-pack, read whole or in pieces.
class PackedDataset : public Dataset {
 public:
  /// Throws Error{usage} if the split has no samples.
  PackedDataset(const std::string& directory, const std::string& split);

  const data::SampleIndex& index() const override { return set_.index(); }
  const Json& info() const override { return set_.info(); }
  std::int64_t about_bytes(std::size_t i) const override { return set_.about_bytes(i); }
  bool has_pieces() const override { return true; }
  bool is_remote() const override { return set_.is_remote(); }
  void fetch(std::span<data::SampleBytes> parts) const override { set_.fetch(parts); }
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
  /// Makes the model's sample of the data of sample `i`. Throws Error if they do not fit its entry.
  virtual CleanSample clean(std::size_t i, data::LatentSample data) const = 0;

  const data::LatentSet set_;
};

/// {"frames":T,"height":H,"width":W,"fps":[...],"usual":{...}}: the largest latent, the frame
/// rates, and the most frequent size.
Json trained_sizes(std::span<const data::Form> forms);

/// Dataset::facts() of latents or codes on disk; `scale` is the latents' scale.
Json latent_facts(const Dataset& data, Json scale);

}  // namespace vfm::train
