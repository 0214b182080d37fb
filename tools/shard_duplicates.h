// Options of vfm-shard and `vfm-shard report` about duplicates.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <string>

#include "base/error.h"
#include "cli/options.h"
#include "dataset/dataset.h"
#include "dataset/sample_vector.h"

class DuplicateChoices {
 public:
  /// The same as in ShardChoices.
  explicit DuplicateChoices(vfm::dataset::ShardOptions& options) : options_(options) {}

  void add(vfm::cli::Options& options) {
    options.group("Duplicates");
    threshold_ = &options.add("--duplicate-threshold", threshold_value_, "COSINE",
                              "least cosine of near duplicates");
    threshold_->check(cosine_fault)
        .everyday()
        .manual(
            "Drop a sample if its embedding and that of a better sample have at least this "
            "cosine: above 0, at most 1.");
    method_ = &options.add("--duplicate-method", method_value_, "auto|exact|clusters",
                           "compare all pairs, or pairs in and around clusters");
    method_->one_of({"auto", "exact", "clusters"})
        .manual(
            "Compare all pairs, or only pairs in and around clusters. *auto* compares all pairs "
            "of up to a million samples. See NEAR DUPLICATES.");
    vector_ = &options.add("--duplicate-vector", options_.near_member, "NAME.npy",
                           "compare this embedding");
    vector_->shown(vfm::dataset::kDefaultVector)
        .manual("Compare this embedding, for example _text.npy_ of captions.");
    options.flag("--keep-near-duplicates", keep_near_, "drop only exact duplicates")
        .everyday()
        .manual("Drop only samples with the same media bytes.");
    options.flag("--keep-duplicates", options_.keep_duplicates, "drop no duplicates")
        .everyday()
        .manual("Drop neither near nor exact duplicates.");
  }

  void check() {
    const bool kept = keep_near_ || options_.keep_duplicates;
    if (kept && (threshold_->given() || method_->given() || vector_->given()))
      vfm::fail_usage(
          "near duplicates are kept, so nothing is compared: leave out --duplicate-threshold, "
          "--duplicate-method and --duplicate-vector");
    options_.duplicate_threshold = threshold_value_;
    if (keep_near_) options_.duplicate_threshold.reset();
    if (method_value_ == "exact") options_.duplicate_method = vfm::dataset::DuplicateMethod::exact;
    if (method_value_ == "clusters")
      options_.duplicate_method = vfm::dataset::DuplicateMethod::clusters;
    if (vector_->given())
      vfm::dataset::check_vector_name("--duplicate-vector", options_.near_member);
  }

 private:
  static std::string cosine_fault(const std::string& text) {
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    const bool fits = !text.empty() && *end == '\0' && value > 0 && value <= 1;
    return fits ? "" : "'" + text + "' is not a cosine above 0 and up to 1";
  }

  vfm::dataset::ShardOptions& options_;
  std::string method_value_ = "auto";
  double threshold_value_ = 0.99;
  bool keep_near_ = false;
  vfm::cli::OptionRow *threshold_ = nullptr, *method_ = nullptr, *vector_ = nullptr;
};
