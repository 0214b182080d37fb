// Options of vfm-caption and `vfm-caption score` about the captioner's questions, and about the
// devices of models.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "cli/options.h"
#include "columns/caption/model_caption.h"
#include "device_engines.h"
#include "device_workers.h"
#include "ops/gpu_options.h"
#include "tensor/device.h"

class CaptionModelOptions {
 public:
  explicit CaptionModelOptions(const vfm::cli::JobOptions& jobs) : jobs_(jobs) {}

  vfm::cli::OptionRow& add_prompt(vfm::cli::Options& options, const char* help) {
    return add_text_option(options, "--prompt", prompt_, help)
        .check(vfm::cli::not_blank)
        .everyday();
  }
  void add_sight(vfm::cli::Options& options) {
    options.add("--fps", fps_, "N", "show the model N frames a second")
        .in(0.01, 240)
        .shown("2; for SmolVLM and Idefics3 the rate in their folder, or 1")
        .manual("Show the model _N_ frames a second.");
    options.add("--window", window_, "N", "ask about N frames of a clip at a time")
        .in(vfm::columns::kLeastWindow, 1 << 20)
        .manual("Ask about _N_ frames of a clip at a time, 16 or more.");
    options
        .add("--frame-tokens", frame_tokens_, "N",
             "maximum number of tokens for two frames, "
             "with Qwen2.5-VL")
        .in(4, 16384)
        .shown("768")
        .manual(
            "The maximum number of tokens for two frames of a video, 4 or more. With fewer tokens "
            "the model is faster and sees less. Only for Qwen2.5-VL, since tiles of SmolVLM and "
            "Idefics3 have a fixed number of tokens.");
  }
  void add_computing(vfm::cli::Options& options) {
    device_.add_workers(options).everyday();
    options.add("--compute", compute_, "auto|f32|bf16", "number format of models")
        .one_of({"auto", "f32", "bf16"})
        .manual(
            "The number format of models. *bf16* halves the memory of keys and values, and is fast "
            "only on GPUs and on processors with bf16 instructions. *auto*: f32 on the CPU, bf16 "
            "on a GPU.");
  }

  /// Throws Error{usage} for GPUs that do not exist.
  void check() { device_.gpus(); }
  const vfm::media::HardwareDecoder* decoder(const vfm::cli::HwaccelOptions& hwaccel) {
    return engines_.decoder(hwaccel);
  }
  bool has_prompt() const { return !prompt_.empty(); }
  const std::string& prompt() const { return prompt_; }
  vfm::workers::StageModels* workers() const { return workers_.get(); }

  /// Stores the options in `model`. Call set() after decoder(). `any` tells whether a model is
  /// used; only a model needs a device.
  void set(vfm::columns::ModelCaptionOptions& model, bool any) {
    if (any) {
      workers_ = workers_of(device_, jobs_, "vfm-caption");
      model.workers = workers_.get();
      model.device = workers_ ? workers_->device() : vfm::choose_device(device_.device);
    }
    const bool gpu = model.device == vfm::Device::cuda;
    // Chooses no matrix product by timing, because texts must not depend on the run.
    if (gpu && !workers_) vfm::ops::set_gpu_options(model.device, true, "auto", "");
    const bool low = compute_ == "bf16" || (compute_ == "auto" && gpu);
    model.compute = low ? vfm::DType::bf16 : vfm::DType::f32;
    model.fps = fps_;
    model.window = window_;
    if (frame_tokens_ > 0) model.frame_tokens = frame_tokens_;
    if (has_prompt()) model.video_prompt = model.picture_prompt = prompt_;
  }

 private:
  const vfm::cli::JobOptions& jobs_;
  std::string prompt_, compute_ = "auto";
  double fps_ = 0;  // Frames a second, or 0 for the model's own rate.
  int window_ = 256, frame_tokens_ = 0;
  vfm::cli::WorkerOptions device_;
  vfm::cli::DeviceEngines engines_{device_, jobs_, "vfm-caption"};
  std::unique_ptr<vfm::workers::StageModels> workers_;
};
