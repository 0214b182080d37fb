// Beginning a run from a model that is there already (vfm-train --init), and going on with one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/json.h"
#include "models/network.h"
#include "nn/parameter.h"
#include "train/run.h"

namespace vfm::train {

/// The configuration of the model `init`, a folder as models/initial_model.h takes it; or, where
/// the run `out` has checkpoints and goes on at them (not `force`), that of the newest: `init` is
/// then not looked at, and may be gone. Throws Error{usage}.
models::DitConfig initial_config(const std::string& init, const std::string& out, bool force);

/// Throws Error{usage}, saying what differs, unless `train`, the train.json of the run options.out,
/// is of this recipe, fitted to the data, of data of this fingerprint, and of the same
/// options.init.
void check_continues(const Json& train, const RunOptions& options, const Recipe& recipe,
                     const std::string& data_fingerprint);

/// Reads the weights of `init` into the parameters. Returns what the run remembers of them:
/// {"path", "hash"}. Throws Error{usage} listing the tensors that do not
/// fit.
Json load_initial(const std::string& init, const nn::ParameterList& parameters);

}  // namespace vfm::train
