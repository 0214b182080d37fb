// What the folders that vfm-pack writes have in common for training, of latents and of codes:
// texts, sizes, and what made them. Thread-safety: pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/json.h"
#include "data/latents.h"
#include "train/dataset.h"

namespace vfm::train {

/// Text width of the data, by their latents.json; 0 if they have no text.
int text_width(const Json& info);

/// A field of a model that comes from the data, where it is 0; throws Error{usage} if it is
/// another.
void fit_field(int& field, int of_data, const char* name);

/// What was read of `entry`, as it is. Throws Error naming the key where text or latent are not
/// finite, or the text has another size than that.
CleanSample take_sample(const data::Entry& entry, data::LatentSample sample, int text_width);

/// {"frames":T,"height":H,"width":W,"fps":[...],"usual":{...}}: the largest latent, the frame
/// rates, and the size that is most frequent.
Json trained_sizes(const std::vector<data::Entry>& entries);

/// Dataset::facts() of such data, `scale` being the latents'.
Json latent_facts(const Dataset& data, Json scale);

}  // namespace vfm::train
