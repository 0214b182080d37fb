// Options that several works of vfm-train share: the recipe, what it is trained on, the model that
// it begins from, and how ranks compute.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/options.h"
#include "cli/runner.h"
#include "train/recipe_file.h"
#include "train/run.h"

/// RECIPE, settings, --data, --init and --continue, with what belongs to them. All of it goes into
/// `run`.
class TrainingOptions {
 public:
  /// `full`: the manual explains each option; else it refers to vfm-train(1), which does.
  explicit TrainingOptions(bool full = false) : full_(full) {}

  vfm::train::RunOptions run;
  std::string recipe;
  std::vector<std::string> settings;

  void add_recipe(vfm::cli::Options& options);
  /// --data, --synthetic and the encoders of clips.
  void add_data(vfm::cli::Options& options);
  /// --init, --init-lora, --base; with `stages` --continue.
  void add_beginning(vfm::cli::Options& options, bool stages);
  /// Before any file is opened.
  void check();
  /// Throws Error{usage} unless RECIPE is given, or --continue, whose recipe stands for it.
  void need_recipe() const;
  /// Reads the recipe, and checks that options go with it. Returns the settings that it is made of.
  std::vector<vfm::train::Setting> read();
  /// What a run of the same would be told: RECIPE and settings, and the options of data and model.
  std::vector<std::string> arguments() const;
  std::vector<std::string> data_arguments() const;
  /// Throws Error{usage} if there is nothing to train on.
  void need_data() const;

 private:
  void add_encoders(vfm::cli::Options& options);

  bool full_;
  std::vector<std::string> data_;
  std::string synthetic_, init_lora_ = "auto";
};

/// --device, --deterministic, --attention, -j, and what inputs may do.
class RankOptions {
 public:
  explicit RankOptions(bool full = false) : full_(full) {}

  vfm::cli::DeviceOptions device;
  vfm::cli::ComputeOptions compute;
  vfm::cli::InputLimitOptions limits;
  int jobs = 0;

  void add(vfm::cli::Options& options);
  /// --no-cuda-graph, of works that compute steps.
  void add_graphs(vfm::cli::Options& options);
  /// Chooses the device, or that of run.gpu, and sets how this process computes.
  void apply(vfm::train::RunOptions& run, const vfm::cli::Context& context) const;

 private:
  bool full_, no_graphs_ = false;
};

/// What a run does before its first step, and a check of its layout, too. What all ranks refuse is
/// said once.
void prepare(TrainingOptions& training, const RankOptions& ranks, const vfm::cli::Context& context,
             vfm::dist::World& world);

/// --gpu NAME or FILE: what steps are predicted for.
vfm::cli::OptionRow& add_gpu(vfm::cli::Options& options, std::optional<std::string>& gpu);

/// Writes a result to standard output, and its words for people to standard error.
void tell(const vfm::Json& result, const std::string& words);
