// A validation loss with the same meaning at every step and in every run: samples, noise levels and
// noise are fixed. The loss is a mean of squares without weights. (With learned weights a training
// loss may become negative.)
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

/// A clip, and its reconstruction by a tokenizer.
struct Reconstruction {
  CleanSample sample;
  std::vector<float> decoded;  ///< laid out as sample.pixels
};

class Validation {
 public:
  /// Takes recipe.validation.samples samples of `data`: evenly over the sorted keys, or over the
  /// index as it is if there are more than data::kBlock samples. `split` is the name of the split
  /// for the record. Keeps the reference.
  Validation(const Recipe& recipe, const Dataset& data, std::string split);

  /// Validates on all ranks, each with its share of the samples. A collective. Returns
  /// {"val_loss":…, "val_split":…, "val_samples":…, "val_sigmas":{"0.1":…}, "val_psnr":…,
  /// "val_ssim":…}. The mean losses at each noise level are in "val_sigmas", for diffusion those of
  /// lambda (D - x0)^2. Their mean is "val_loss". Only a tokenizer has "val_psnr", the mean
  /// PSNR of clips in dB, and "val_ssim", their mean SSIM. Samples that cannot be read are left
  /// out, and kept in failures().
  Json run(const Objective& objective, const Parallel& parallel);
  /// Passes up to `most` of the samples through a tokenizer on this rank. Not a collective.
  std::vector<Reconstruction> reconstruct(const Objective& objective, std::size_t most);
  const std::string& split() const { return split_; }
  /// Samples of this rank's share that could not be read: key -> reason.
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

/// A log line for a record of run() with "step" added.
std::string validation_words(const Json& record);

}  // namespace vfm::train
