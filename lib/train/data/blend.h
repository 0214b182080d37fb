// Several folders of data as one: a blend, in proportions that hold for any number of samples.
//
// Folders have weights ('data.weights') or are repeated ('data.repeats'); neither is each folder
// once an epoch. The order is data/blend_order.h. What made latents and texts must be the same;
// latents are seen in one scale, that of what training sees of all. A sample's number is its place
// in its folder and all folders before; nothing is kept but the folders' own indexes, which are
// mapped. Its key begins with its folder's name: "films/0001". Thread-safety: as Dataset.
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

/// In the train.json of a run on a blend: the names of its folders when it began, with which keys
/// begin.
inline constexpr const char* kNamedKeys = "named_keys";

/// Sets data and blend of the options: the folders that were given on the command line, `given`,
/// else those of the recipe. Throws Error{usage} where one is given twice, or there are not as many
/// weights or repeats as folders.
void settle_folders(RunOptions& options, const std::vector<std::string>& given);

/// The folders that these options name, for people; "" for made-up data.
std::string name_data(const RunOptions& options, std::string_view between = ", ");

/// `split` of what the options name: the samples of one folder, those of a blend, or made-up ones.
/// Throws Error{usage}; where the folders of a blend do not go together with all that differs.
/// Clips that are to be encoded are of one folder (check_clip_options()).
std::unique_ptr<Dataset> open_data(const RunOptions& options, const std::string& split = "train");

/// Of one folder of the blend `data`, for Kind::open(): its samples are seen as that sees them.
RunOptions options_of_folder(const RunOptions& options, const Dataset& data, std::size_t folder);

/// Of blends, else nothing: [{"folder":…, "share":…, "samples":…, "seen":…, "epochs":…}, ...] after
/// so many samples.
Json folders_after(const Dataset& data, double samples);

}  // namespace vfm::train
