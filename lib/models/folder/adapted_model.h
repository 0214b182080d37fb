// A model to begin from, to export, or under adapters, that may itself be a run of adapters: then
// its weights are those of the model under these, with them merged in.
// Thread-safety: as models/folder/model_folder.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "models/folder/model_folder.h"

namespace vfm::models {

/// Opens whatever ModelFolder takes, and of runs of adapters the model with them merged in:
/// `choice.average` means their averaged values then, `base` where the model under them is now, ""
/// being where it was. Hash and weights throw Error{usage} if that is another model than it was.
ModelFolder open_model(const std::string& path, ModelChoice choice, const std::string& base = {});

/// Opens the model that the adapters of `checkpoint` are of: `base`, or if that is empty where its
/// train.json says. Throws Error{usage} if nothing is there.
ModelFolder open_under(const std::string& checkpoint, const std::string& base, ModelChoice choice);

/// Its hash. Throws Error{usage} unless the adapters of `checkpoint` were trained on that model.
std::string hash_under(const ModelFolder& under, const std::string& checkpoint);

}  // namespace vfm::models
