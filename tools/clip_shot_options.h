// How vfm-clip finds shots: the options of detectors.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/options.h"
#include "clip/clip.h"
#include "models/transnet/transnet.h"

class ClipShotOptions {
 public:
  void add(vfm::cli::Options& options, vfm::clip::ClipRecipe& recipe) {
    CLI::App& app = options.app();
    app.add_option("--detector", detector_, "how cuts are found; transnetv2: all changes of shot")
        ->type_name("content|adaptive|histogram|combined|transnetv2")
        ->check(CLI::IsMember({"content", "adaptive", "histogram", "combined", "transnetv2"}))
        ->capture_default_str();
    app.add_option("--detector-model", detector_model_, "the folder of a TransNet V2")
        ->type_name("DIR")
        ->check(vfm::cli::not_empty);
    auto* one = app.add_option("--threshold", recipe.shots.threshold,
                               "score that makes a cut (defaults: content 27, adaptive 3, "
                               "histogram 0.5, combined 0.38, transnetv2 0.5)");
    one->type_name("SCORE")->check(vfm::cli::above_zero);
    thresholds_ = app.add_option("--thresholds", threshold_list_,
                                 "of --shots-only: a list for each of these, from one decoding");
    thresholds_->type_name("A,B,...|FROM:TO:STEP")->excludes(one);
    gradual_ = app.add_flag("--gradual,!--no-gradual", recipe.shots.gradual,
                            "find fades, dissolves, wipes, transitions (default), or only cuts");
    strictness_ =
        app.add_option("--strictness", recipe.shots.strictness,
                       "how well dissolves, wipes and transitions must fit: above 1 finds fewer")
            ->type_name("FACTOR")
            ->check(CLI::Range(0.1, 2.5))
            ->check(vfm::cli::not_nan)
            ->capture_default_str();
    app.add_option("--stream", recipe.stream,
                   "index of the video stream in the container (default: the one a player shows)")
        ->type_name("N")
        ->check(vfm::cli::not_negative);
  }

  /// A network knows but one kind of change, and no picture by which to judge how well it fits.
  void check(vfm::curate::ShotOptions& shots) const {
    shots.detector = vfm::curate::parse_detector(detector_);
    const bool network = shots.detector == vfm::curate::Detector::transnetv2;
    if (network == detector_model_.empty())
      vfm::fail_usage("--detector transnetv2 goes with --detector-model DIR, and with it alone");
    if (!network) return;
    if (gradual_->count() > 0 || strictness_->count() > 0)
      vfm::fail_usage(
          "transnetv2 finds cuts and gradual changes alike; leave out --gradual, --no-gradual and "
          "--strictness");
    check_probability("--threshold", shots.threshold);
  }

  bool has_thresholds() const { return thresholds_->count() > 0; }
  std::vector<double> thresholds() const {
    std::vector<double> scores = vfm::clip::parse_thresholds(threshold_list_);
    if (vfm::curate::parse_detector(detector_) == vfm::curate::Detector::transnetv2)
      for (const double score : scores)
        check_probability("--thresholds", score);
    return scores;
  }

  /// Of --detector-model, for as long as this lives.
  void open(vfm::clip::ClipOptions& options) {
    if (detector_model_.empty()) return;
    changes_ = std::make_unique<vfm::models::TransNet>(detector_model_);
    options.recipe.detector_model = changes_->config();
    options.change_model = [this](std::span<const std::uint8_t> frames) {
      return changes_->probabilities(frames);
    };
  }

 private:
  static void check_probability(const char* option, double threshold) {
    if (threshold >= 1)
      vfm::fail_usage("{} {} is no probability: of transnetv2 it is below 1", option, threshold);
  }

  CLI::Option *thresholds_ = nullptr, *gradual_ = nullptr, *strictness_ = nullptr;
  std::string detector_ = "combined", detector_model_, threshold_list_;
  std::unique_ptr<vfm::models::TransNet> changes_;  // in detector_model_
};
