// The models that vfm-clip asks: where shots change, and which of them are joined.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/encoder_identity.h"
#include "base/error.h"
#include "cli/options.h"
#include "clip/clip.h"
#include "models/encoder/picture_encoder.h"
#include "models/transnet/transnet.h"
#include "tensor/device.h"

class ClipModelOptions {
 public:
  void add_detector(CLI::App& app) {
    app.add_option("--detector-model", detector_, "the folder of a TransNet V2")
        ->type_name("DIR")
        ->check(vfm::cli::not_empty);
  }

  void add_stitching(CLI::App& app, vfm::clip::ClipRecipe& recipe) {
    app.add_flag("--stitch,!--no-stitch", recipe.stitch,
                 "join neighbouring shots whose end and start look the same (default), or not");
    auto* model = app.add_option("--stitch-model", stitcher_,
                                 "what says so: a CLIP, SigLIP or DINOv2, not the built-in look");
    model->type_name("DIR")->check(vfm::cli::not_empty);
    threshold_ =
        app.add_option("--stitch-threshold", recipe.stitch_threshold,
                       "likeness from which shots are joined; 1 is the same picture (default: "
                       "0.6, of --stitch-model 0.82)")
            ->type_name("LIKENESS")
            ->check(CLI::Range(0.0, 1.0))
            ->check(vfm::cli::not_nan);
    device_.add(app);
    app.get_option("--device")->needs(model);
    app.add_option("--compute", compute_, "of --stitch-model; auto: f32, bf16 on a GPU")
        ->type_name("DTYPE")
        ->check(CLI::IsMember({"auto", "f32", "bf16"}))
        ->needs(model)
        ->capture_default_str();
  }

  bool has_detector() const { return !detector_.empty(); }

  void check_stitching(bool shots_only, vfm::clip::ClipRecipe& recipe) const {
    if (stitcher_.empty()) return;
    if (shots_only) vfm::fail_usage("--shots-only joins no shots; leave out --stitch-model");
    if (!recipe.stitch) vfm::fail_usage("--no-stitch joins no shots; leave out --stitch-model");
    if (threshold_->count() == 0) recipe.stitch_threshold = vfm::curate::kVectorStitchThreshold;
  }

  /// Opens those that were named. They are used by `options` then, and must outlive them.
  void open(vfm::clip::ClipOptions& options) {
    if (!stitcher_.empty()) open_stitcher(options);
    if (!detector_.empty()) open_detector(options);
  }

 private:
  void open_stitcher(vfm::clip::ClipOptions& options) {
    const vfm::Device device = vfm::choose_device(device_.device);
    const bool low = compute_ == "bf16" || (compute_ == "auto" && device == vfm::Device::cuda);
    encoder_ = vfm::models::make_picture_encoder(stitcher_, device,
                                                 low ? vfm::DType::bf16 : vfm::DType::f32);
    options.recipe.stitch_model = vfm::encoder_identity(encoder_->config());
    options.recipe.stitch_model["rule"] = "cosine of the last and the first frame";
    options.stitch_vectors = [this](std::span<const vfm::media::RgbImage> pictures) {
      std::vector<vfm::models::PictureView> views;
      for (const vfm::media::RgbImage& picture : pictures)
        views.push_back({picture.width, picture.height, picture.pixels});
      return encoder_->encode(views);
    };
  }

  void open_detector(vfm::clip::ClipOptions& options) {
    changes_ = std::make_unique<vfm::models::TransNet>(detector_);
    options.recipe.detector_model = changes_->config();
    options.change_model = [this](std::span<const std::uint8_t> frames) {
      return changes_->probabilities(frames);
    };
  }

  std::string detector_, stitcher_, compute_ = "auto";
  vfm::cli::DeviceOptions device_;
  CLI::Option* threshold_ = nullptr;
  std::unique_ptr<vfm::models::PictureEncoder> encoder_;  // in stitcher_
  std::unique_ptr<vfm::models::TransNet> changes_;        // in detector_
};
