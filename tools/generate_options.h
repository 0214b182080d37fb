// The options that the works of vfm-generate have in common: the everyday one (vfm-generate.cc),
// decode (generate-decode.cc) and cost (generate-cost.cc).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/options.h"
#include "cli/runner.h"
#include "device_workers.h"
#include "generate/generate.h"

/// The tokenizer, and how it computes: shared by all works.
struct TokenizerOptions {
  std::string tokenizer, dtype = "auto";
  std::uint64_t memory = 0;
  vfm::cli::WorkerOptions device;  ///< decode and cost have no workers

  void add_folder(vfm::cli::Options& options);
  void add_computing(vfm::cli::Options& options);
  /// --compute; nothing: auto.
  std::optional<vfm::DType> compute() const;
  /// Where a rank computes. Throws Error{usage}.
  vfm::Device device_of(const vfm::cli::Launch& launch) const;
};

/// The folder for clips, and their encoder: shared by the works that write clips.
struct ClipFileOptions {
  vfm::cli::OutputOptions output;
  std::string encoder;
  std::optional<int> quality;  ///< 0..51

  /// `encoder_shown`, `quality_shown`: what help says of their defaults.
  void add(vfm::cli::Options& options, const char* encoder_shown, const char* quality_shown);
  bool stream() const { return output.directory == "-"; }
  /// Throws Error{usage} for an encoder that FFmpeg does not have, or a stream to a terminal.
  void check(const vfm::cli::Launch& launch) const;
};

/// The model and what decides a clip's cost: shared by the everyday work and cost.
class GenerateOptions {
 public:
  TokenizerOptions tokenizer;

  void add_model(vfm::cli::Options& options);
  void add_prompt(vfm::cli::Options& options);
  void add_clip(vfm::cli::Options& options);
  void add_sampling(vfm::cli::Options& options);
  /// After --device.
  void add_precision(vfm::cli::Options& options);
  /// Puts them into the job. Throws Error{usage}. Opens nothing.
  void read(vfm::generate::GenerateJob& job) const;
  /// Whether frames are given without a condition.
  bool lacks_condition() const { return condition_frames_ && condition_.empty(); }

 private:
  std::string model_, text_encoder_, negative_, size_, condition_, sampler_, sigmas_, fp8_,
      quantize_, parallel_;
  std::vector<std::string> loras_;
  bool no_merge_ = false;
  int frames_ = 0;  // 0: as trained
  std::optional<int> condition_frames_, steps_;
  std::optional<double> guidance_, temperature_, top_p_;
};
