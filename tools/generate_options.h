// Options that vfm-generate, `vfm-generate decode` and `vfm-generate cost` share.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/options.h"
#include "cli/runner.h"
#include "device_workers.h"
#include "generate/generate.h"

/// Options of the tokenizer and its device, for vfm-generate and its verbs `decode` and `cost`.
struct TokenizerOptions {
  std::string tokenizer, dtype = "auto";
  std::uint64_t memory = 0;
  vfm::cli::WorkerOptions device;  ///< Only vfm-generate starts workers.

  void add_folder(vfm::cli::Options& options);
  void add_computing(vfm::cli::Options& options);
  /// Returns the value of --compute, or nullopt for `auto`.
  std::optional<vfm::DType> compute() const;
  /// Returns the device of this rank. Throws Error{usage}.
  vfm::Device device_of(const vfm::cli::Launch& launch) const;
};

/// Options of the clips' folder and encoder, for vfm-generate and `vfm-generate decode`.
struct ClipFileOptions {
  vfm::cli::OutputOptions output;
  std::string encoder;
  std::optional<int> quality;  ///< 0 to 51.

  /// Adds the options. `encoder_shown` and `quality_shown` are the defaults in the help.
  void add(vfm::cli::Options& options, const char* encoder_shown, const char* quality_shown);
  bool stream() const { return output.directory == "-"; }
  /// Throws Error{usage} if FFmpeg lacks the encoder, or if a stream of frames would go to a
  /// terminal.
  void check(const vfm::cli::Launch& launch) const;
};

/// Options that decide a clip's cost, such as the model, for vfm-generate and `vfm-generate cost`.
class GenerateOptions {
 public:
  TokenizerOptions tokenizer;

  void add_model(vfm::cli::Options& options);
  void add_prompt(vfm::cli::Options& options);
  void add_clip(vfm::cli::Options& options);
  void add_sampling(vfm::cli::Options& options);
  /// Call add_precision() after --device was added.
  void add_precision(vfm::cli::Options& options);
  /// Stores the options in the job. Opens no file. Throws Error{usage}.
  void read(vfm::generate::GenerateJob& job) const;
  /// Returns whether --condition-frames is given without --condition.
  bool lacks_condition() const { return condition_frames_ && condition_.empty(); }

 private:
  std::string model_, text_encoder_, negative_, size_, condition_, sampler_, as_, sigmas_, fp8_,
      quantize_, parallel_;
  std::vector<std::string> loras_;
  bool no_merge_ = false;
  int frames_ = 0;  // Number of frames, or 0 for the number in training.
  std::optional<int> condition_frames_, steps_;
  std::optional<double> guidance_, guidance_low_, temperature_;
};
