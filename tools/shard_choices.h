// Options of vfm-shard, `vfm-shard plan` and `vfm-shard report` that choose samples, drop
// duplicates, and set splits and bins.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/options.h"
#include "dataset/dataset.h"

class ShardChoices {
 public:
  /// check() fills `options`, which must outlive this object.
  explicit ShardChoices(vfm::dataset::ShardOptions& options) : options_(options) {}

  void add(vfm::cli::Options& options);
  /// Adds --shard-size and --compress.
  void add_size(vfm::cli::Options& options);
  /// Refers from the manual of a verb to that of vfm-shard, which has paragraphs for the options of
  /// add().
  static void explain(vfm::cli::Options& options);
  /// Call it in Tool::check().
  void check();

 private:
  void add_samples(vfm::cli::Options& options);
  void add_duplicates(vfm::cli::Options& options);
  void add_places(vfm::cli::Options& options);
  void check_duplicates();

  static constexpr const char* kSplit = "train=1";

  vfm::dataset::ShardOptions& options_;
  vfm::cli::SeedOptions seed_;
  std::string balance_text_, split_ = kSplit;
  std::string resolution_ = "256,480,720,1080,2160", aspect_ = "0.65,0.88,1.16,1.55",
              seconds_ = "2,5,10,30";
  std::string method_value_ = "auto", compress_ = "none";
  double threshold_value_ = 0.99;
  bool keep_near_ = false;
  vfm::cli::OptionRow *balance_ = nullptr, *threshold_ = nullptr, *method_ = nullptr,
                      *vector_ = nullptr;
};
