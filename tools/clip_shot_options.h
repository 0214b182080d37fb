// Options of vfm-clip and `vfm-clip shots` about the search for shots.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/options.h"
#include "clip/options.h"
#include "models/transnet/transnet.h"

class ClipShotOptions {
 public:
  void add(vfm::cli::Options& options, vfm::clip::ClipRecipe& recipe) {
    threshold_ =
        &options.add("--threshold", recipe.shots.threshold, "SCORE", "minimum score of a cut");
    threshold_->check(vfm::cli::above_zero)
        .shown("0.38")
        .everyday()
        .manual(
            "A frame begins a shot if its score is at least this number (above 0). Scores are at "
            "most 1.35. With *--detector-model*, scores are probabilities below 1, and the default "
            "is 0.5.");
    options.flag("--no-gradual", no_gradual_, "find cuts only")
        .manual("Find only cuts, not fades, dissolves, wipes and other transitions.");
    options
        .add("--detector-model", detector_model_, "DIR",
             "find changes of shot by the TransNet V2 in DIR")
        .check(vfm::cli::not_empty)
        .manual(
            "Find changes of shot by the TransNet V2 in this folder. Its weights are those of the "
            "public PyTorch module (_transnetv2-pytorch-weights.pth_, another PyTorch checkpoint, "
            "or _model.safetensors_). The model runs on the processor. See *vfm-shots*(7).");
    options.add("--stream", recipe.stream, "N", "index of the video stream in the container")
        .check(vfm::cli::not_negative)
        .shown("the stream that players show")
        .manual("The video stream with this index in the container.");
    options.flag("--no-deinterlace", no_deinterlace_, "leave interlaced frames as they are")
        .manual("Leave interlaced frames as they are. See *vfm-colour*(7).");
  }

  /// Throws Error{usage} for --no-gradual with --detector-model.
  void check(vfm::clip::ClipRecipe& recipe) const {
    recipe.deinterlace = !no_deinterlace_;
    recipe.shots.gradual = !no_gradual_;
    if (!by_model()) return;
    recipe.shots.detector = vfm::curate::Detector::transnetv2;
    if (no_gradual_)
      vfm::fail_usage("--detector-model finds all kinds of changes alike; leave out --no-gradual");
    check_score("--threshold", recipe.shots.threshold);
  }

  /// Throws Error{usage} if --detector-model is given and the score is 1 or more.
  void check_score(const char* option, double score) const {
    if (by_model() && score >= 1)
      vfm::fail_usage("{} {} is not below 1: --detector-model gives probabilities", option, score);
  }

  vfm::cli::OptionRow& threshold() const { return *threshold_; }

  /// Opens the model of --detector-model for `options`, which must not outlive this object.
  void open(vfm::clip::ClipOptions& options) {
    if (!by_model()) return;
    changes_ = std::make_unique<vfm::models::TransNet>(detector_model_);
    options.recipe.detector_model = changes_->config();
    options.change_model = [this](std::span<const std::uint8_t> frames) {
      return changes_->probabilities(frames);
    };
  }

 private:
  bool by_model() const { return !detector_model_.empty(); }

  vfm::cli::OptionRow* threshold_ = nullptr;
  bool no_gradual_ = false, no_deinterlace_ = false;
  std::string detector_model_;
  std::unique_ptr<vfm::models::TransNet> changes_;
};
