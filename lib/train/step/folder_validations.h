// The validations of a run: one, or for a blend one for each of its folders, and their means.
// Thread-safety: one thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "train/run.h"
#include "train/step/validation.h"

namespace vfm::train {

class FolderValidations {
 public:
  /// If a folder has no split "val", takes training samples, and logs that if `tell`. Takes none at
  /// all if the recipe asks for no validation. Keeps the reference to `data`, which are the data of
  /// the options. Throws Error.
  FolderValidations(const RunOptions& options, const Recipe& recipe, const Dataset& data,
                    bool tell);

  bool empty() const { return all_.empty(); }
  /// Runs the validation of each folder. Means are weighted by the folders' shares of what training
  /// sees; "val_folders" has the loss of each folder by name. A collective.
  Json run(const Objective& objective, const Parallel& parallel);
  /// Samples of this rank's share that could not be read, in all folders: key -> reason.
  std::map<std::string, std::string> failures() const;
  /// The validation of the first folder, or null.
  Validation* first() { return empty() ? nullptr : &all_.front().validation; }

 private:
  struct One {
    double share = 1;
    Validation validation;
  };
  const Dataset& data_;  // source of the folders' names after settle()
  std::vector<std::unique_ptr<Dataset>> held_out_;
  std::deque<One> all_;  // one for each folder of a blend
};

}  // namespace vfm::train
