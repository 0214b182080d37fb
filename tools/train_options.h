// Options of several verbs of vfm-train: recipe, data, initial model, and computing of ranks.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/options.h"
#include "cli/runner.h"
#include "train/recipe/recipe_file.h"
#include "train/run.h"

/// The positional arguments RECIPE and SETTING, and the options --data, --init, --continue and
/// related ones. Their values are stored in `run`.
class TrainingOptions {
 public:
  /// With `full`, the manual explains each option. Otherwise the manual refers to vfm-train(1).
  explicit TrainingOptions(bool full = false) : full_(full) {}

  vfm::train::RunOptions run;
  std::string recipe;
  std::vector<std::string> settings;

  void add_recipe(vfm::cli::Options& options);
  /// Adds --data, --synthetic and the encoders of clips.
  void add_data(vfm::cli::Options& options);
  /// Adds --init, --init-lora and --base. If `stages` is true, also adds --continue.
  void add_beginning(vfm::cli::Options& options, bool stages);
  /// Checks the options that need no file.
  void check();
  /// Throws Error{usage} if neither RECIPE nor --continue is given.
  void need_recipe() const;
  /// Reads the recipe, and checks that the options fit. Returns the recipe's settings. `first`:
  /// this is the first of the ranks that read together.
  std::vector<vfm::train::Setting> read(bool first = true);
  /// Return arguments for a run with the same options. arguments() returns the positional
  /// arguments. data_arguments() returns the options for the data and the initial model.
  std::vector<std::string> arguments() const;
  std::vector<std::string> data_arguments() const;
  /// Throws Error{usage} if neither --data nor --synthetic is given.
  void need_data() const;

 private:
  void add_encoders(vfm::cli::Options& options);

  bool full_;
  std::vector<std::string> data_;
  std::string synthetic_, init_lora_ = "auto";
};

/// The options --device, --deterministic, --attention, -j, and the options that limit inputs.
class RankOptions {
 public:
  explicit RankOptions(bool full = false) : full_(full) {}

  vfm::cli::DeviceOptions device;
  vfm::cli::ComputeOptions compute;
  vfm::cli::InputLimitOptions limits;
  int jobs = 0;

  void add(vfm::cli::Options& options);
  /// Adds --no-cuda-graph, for verbs that compute training steps.
  void add_graphs(vfm::cli::Options& options);
  /// Sets the device, the threads and the limits for this process. The device is that of run.gpu if
  /// run.gpu is set.
  void apply(vfm::train::RunOptions& run, const vfm::cli::Context& context) const;

 private:
  bool full_, no_graphs_ = false;
};

/// Prepares a run or `vfm-train check` for the first step. An error that all ranks have is reported
/// once.
void prepare(TrainingOptions& training, const RankOptions& ranks, const vfm::cli::Context& context,
             vfm::dist::World& world);

/// Adds the option --gpu, whose value is a name or a file: the GPU for which the time of steps is
/// predicted.
vfm::cli::OptionRow& add_gpu(vfm::cli::Options& options, std::optional<std::string>& gpu);

/// Writes a result to standard output, and `words` to standard error.
void tell(const vfm::Json& result, const std::string& words);
