// Validation loss that means the same at every step and in every run: fixed samples, fixed noise
// levels, fixed noise, no weights on top (training with a learned weight shows negative losses;
// this is a mean of squares).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "data/packing.h"
#include "train/data/dataset.h"
#include "train/data/shared_samples.h"
#include "train/step/objective.h"
#include "train/step/parallel.h"

namespace vfm::train {

/// A clip, and what a tokenizer makes of it.
struct Reconstruction {
  CleanSample sample;
  std::vector<float> decoded;  ///< as sample.pixels
};

class Validation {
 public:
  /// Takes recipe.validation.samples samples of `data`, evenly over its keys in sorted order, or of
  /// more than data::kBlock samples over the index as it is; `split` is what the record calls them.
  /// Keeps the reference.
  Validation(const Recipe& recipe, const Dataset& data, std::string split);

  /// {"val_loss":…, "val_split":…, "val_samples":…, "val_sigmas":{"0.1":…}, "val_psnr":…,
  /// "val_ssim":…}: of a tokenizer also the mean PSNR of clips, in dB, and the mean SSIM; for the
  /// others the mean loss per noise level, for diffusion that of lambda(sigma) (D - x0)^2, and the
  /// mean over levels. A collective: every rank takes its share. Samples that cannot be read are
  /// left out, and kept in failures().
  Json run(const Objective& objective, const Parallel& parallel);
  /// Up to `most` of the samples through a tokenizer, here alone. No collective.
  std::vector<Reconstruction> reconstruct(const Objective& objective, std::size_t most);
  const std::string& split() const { return split_; }
  /// Samples of this rank's share that could not be read: key -> why.
  const std::map<std::string, std::string>& failures() const { return failures_; }

 private:
  std::vector<CleanSample> read(const data::Pack& pack);
  void leave_out(const ReadSample& unread);
  std::vector<CleanSample> read_together(const data::Pack& pack, const Parallel& parallel);

  const Dataset& data_;
  std::string split_;
  std::vector<data::Pack> packs_;  ///< indices into data_
  std::map<std::string, std::string> failures_;
};

/// Of a record that run() made, with its "step": a line for a log.
std::string validation_words(const Json& record);

}  // namespace vfm::train
