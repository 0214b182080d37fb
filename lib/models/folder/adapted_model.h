// Opens a model to begin from, to export, or to put adapters on, which may itself be a run of
// adapters. Then its weights are those of the base model with the adapters merged in.
// Thread-safety: as models/folder/model_folder.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "models/folder/model_folder.h"

namespace vfm::models {

/// Opens whatever ModelFolder takes; for a run of adapters the base model with the adapters merged
/// in. Then `choice.average` selects the averaged values of the adapters. `base` is the present
/// path of the base model; "": the path in train.json. Hash and weights throw Error{usage} if the
/// base model has changed.
ModelFolder open_model(const std::string& path, ModelChoice choice, const std::string& base = {});

/// Opens the base model of the adapters of `checkpoint`, at `base`, or if that is empty at the path
/// in its train.json. Throws Error{usage} if nothing is there.
ModelFolder open_under(const std::string& checkpoint, const std::string& base, ModelChoice choice);

/// The hash of the base model `under`. Throws Error{usage} unless the adapters of `checkpoint` were
/// trained on that model.
std::string hash_under(const ModelFolder& under, const std::string& checkpoint);

}  // namespace vfm::models
