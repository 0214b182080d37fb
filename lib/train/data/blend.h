// Several folders of data as one: a blend, in proportions that hold for any number of samples.
//
// Folders have weights ('data.weights') or are repeated ('data.repeats'). With neither, an epoch
// has each folder once. The order is data/blend_order.h. All folders must have the same tokenizer
// and text encoder. Their latents are normalized by one scale, computed over all that training
// sees. Samples are numbered through all folders; only the folders' mapped indexes are kept. A
// sample's key begins with the name of its folder: "films/0001". Thread-safety: as Dataset.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "train/data/dataset.h"
#include "train/run.h"

namespace vfm::train {

/// A key in the train.json of a run on a blend. It holds the folders' names when the run began,
/// with which sample keys begin.
inline constexpr const char* kNamedKeys = "named_keys";

/// Sets `data` and `blend` of the options to the folders `given` on the command line, or else to
/// those of the recipe. Throws Error{usage} if a folder is given twice, or if the number of weights
/// or repeats is not that of the folders.
void settle_folders(RunOptions& options, const std::vector<std::string>& given);

/// Names the folders of these options in messages; "" for made-up data.
std::string name_data(const RunOptions& options, std::string_view between = ", ");

/// Opens `split` of the data that the options name: one folder, a blend, or made-up samples. Throws
/// Error{usage}; if the folders of a blend do not fit each other, it lists all differences. Clips
/// to be encoded must be in one folder (check_clip_options()).
std::unique_ptr<Dataset> open_data(const RunOptions& options, const std::string& split = "train");

/// Options for Kind::open() that open one folder of the blend `data` with the blend's scale.
RunOptions options_of_folder(const RunOptions& options, const Dataset& data, std::size_t folder);

/// For a blend, after `samples` samples: [{"folder":…, "share":…, "samples":…, "seen":…,
/// "epochs":…}, ...]. An empty list without a blend.
Json folders_after(const Dataset& data, double samples);

}  // namespace vfm::train
