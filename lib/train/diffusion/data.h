// Continuous latents for a diffusion network: those that vfm-pack wrote, and made-up ones.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "models/dit/edm.h"
#include "train/data/dataset.h"
#include "train/data/synthetic.h"

namespace vfm::train {

/// `split` of the latents in `directory`. Throws Error{usage} if there are none. They are seen in
/// the scale of the model that the run begins from, if there is one and it has as many channels
/// (fit() refuses others); else in their own, whitened by degree `whitening`
/// (models::LatentScale::whitened).
std::unique_ptr<Dataset> open_latents(const std::string& directory, const std::string& split,
                                      double whitening = 1,
                                      const std::optional<models::LatentScale>& scale = {});

/// Fits the network to `data`, which has `channels` channels. Throws Error{usage}.
void fit_network(Recipe& recipe, const Dataset& data, int channels);

/// Latents whose scale can be set, before any is read: what a dataset is, too, that can be a folder
/// of a blend.
class ScaledLatents {
 public:
  virtual ~ScaledLatents() = default;
  virtual void set_scale(models::LatentScale scale) = 0;
};

/// Has the latents of several folders seen in one scale: channels' mean and deviation over all that
/// training sees, by the samples' shares and their mean sizes; where the folders' own are the same,
/// these. Whitened as in open_latents(). Of datasets that are ScaledLatents.
void share_scale(std::span<const std::unique_ptr<Dataset>> folders,
                 std::span<const DataSource> sources, double whitening);

/// Normal numbers, and texts of them.
struct MadeUpLatents {
  SampleSizes sizes;
  int channels = 16, text_tokens = 512, text_width = 1024;
};
std::unique_ptr<Dataset> make_up_latents(const MadeUpLatents& options);

}  // namespace vfm::train
