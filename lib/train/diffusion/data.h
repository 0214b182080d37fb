// Continuous latents for a diffusion network: from vfm-pack, or made up.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "models/process/latent_scale.h"
#include "train/data/dataset.h"
#include "train/data/synthetic.h"

namespace vfm::train {

/// Opens `split` of the latents in `directory`. Throws Error{usage} if there are none. `scale` is
/// the scale of the model that the run begins from. It normalizes the latents if it has as many
/// channels (fit() refuses other latents). Otherwise their own scale normalizes them, whitened as
/// the recipe says (models::LatentScale::whitened). The process is that of the recipe.
std::unique_ptr<Dataset> open_latents(const std::string& directory, const std::string& split,
                                      const DiffusionRecipe& recipe = {},
                                      const std::optional<models::LatentScale>& scale = {});

/// Fits the recipe's network to `data`, which has `channels` channels. Throws Error{usage}.
void fit_network(Recipe& recipe, const Dataset& data, int channels);

/// Latents whose scale can be set before any is read. Datasets that can be folders of a blend
/// implement this interface.
class ScaledLatents {
 public:
  virtual ~ScaledLatents() = default;
  virtual void set_scale(models::LatentScale scale) = 0;
};

/// Sets one scale for the latents of several folders: mean and deviation of each channel over all
/// that training sees, weighted by the folders' shares of samples and their mean sizes. If the
/// folders have equal scales, these are used. Whitened as in open_latents(). All folders must be
/// ScaledLatents.
void share_scale(std::span<const std::unique_ptr<Dataset>> folders,
                 std::span<const DataSource> sources, double whitening);

/// Latents of normal random numbers, with texts of the same.
struct MadeUpLatents {
  SampleSizes sizes;
  int channels = 16, text_tokens = 512, text_width = 1024;
  models::Process process = {};
};
std::unique_ptr<Dataset> make_up_latents(const MadeUpLatents& options);

}  // namespace vfm::train
