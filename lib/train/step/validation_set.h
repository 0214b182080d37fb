// The validations of a run: one, or of a blend one for each of its folders, and what they make
// together. Thread-safety: one thread.
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

class Validations {
 public:
  /// Of a folder without a split "val" training samples are taken, which is said where `tell`. None
  /// if the recipe has none. Keeps the reference to `data`, which the options name. Throws Error.
  Validations(const RunOptions& options, const Recipe& recipe, const Dataset& data, bool tell);

  bool empty() const { return all_.empty(); }
  /// As Validation::run(), of all folders alike: means are weighted by the folders' shares of what
  /// training sees; "val_folders" has the loss of each, by name. A collective.
  Json run(const Objective& objective, const Parallel& parallel);
  /// Of all: samples of this rank's share that could not be read: key -> why.
  std::map<std::string, std::string> failures() const;
  /// Of the first folder; or null.
  Validation* first() { return empty() ? nullptr : &all_.front().validation; }

 private:
  struct One {
    double share = 1;
    Validation validation;
  };
  const Dataset& data_;  // whose folders have their names when it is settled
  std::vector<std::unique_ptr<Dataset>> held_out_;
  std::deque<One> all_;  // of a blend one for each folder
};

}  // namespace vfm::train
