// The pipelines of diffusers that a network is a part of. Thread-safety: constants.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string_view>

#include "models/dit/network.h"

namespace vfm::models {

/// Facts of a pipeline's folder by which models of one class are told apart.
struct PipelineModel {
  const NetworkConfig& network;
  /// "expand_timesteps" of the pipeline: given frames have noise level 0.
  bool clean_time = false;
  bool experts = false;  ///< it has one network each for high and low noise levels
};

/// How diffusers samples a model that its authors' program samples otherwise. Two networks have one
/// guidance.
struct InDiffusers {
  int steps = 0;
  double guidance = 0;  ///< as here: one less than there
  double shift = 1;     ///< of the scheduler in a folder of the model

  bool operator==(const InDiffusers&) const = default;
};

/// A pipeline of diffusers with the network as "transformer", and how it is sampled unless the user
/// says otherwise. Beside the network it has "vae", "text_encoder", "tokenizer" and "scheduler".
struct PipelineForm {
  std::string_view models;  ///< for messages: "Cosmos-1.0's"
  /// The class of a pipeline that makes videos from texts, and of one that continues given frames.
  std::array<std::string_view, 2> classes;
  std::span<const std::string_view> vaes, text_encoders, schedulers;  ///< supported classes
  std::span<const std::string_view> left_out = {};  ///< parts that an export names without them
  std::string_view text_tokenizer;  ///< class of the text tokenizer, if its folder does not say
  bool clean_texts = false;         ///< its text encoder has text::EncoderConfig::clean
  /// The network is given the noise level in its own type. With bf16 it is rounded.
  bool rounds_level = false;
  double no_guidance = 0;  ///< a guidance up to this value is none to the pipeline

  int frames = 0, height = 0, width = 0;  ///< size of a video in pixels
  double fps = 0;
  int text_tokens = 0;  ///< texts are padded to this length with zero vectors; 0: not padded
  int steps = 0;
  double guidance = 1;
  /// The same for two networks that are chosen by noise level: at high and at low levels. None:
  /// both have `guidance`.
  std::optional<std::array<double, 2>> guidance_of_two = {};
  double sigma_min = 0, sigma_max = 0;  ///< of EDM
  double shift = 1;                     ///< of flow matching
  /// Set if steps, guidance and shift above are those of the authors' program. A folder with a
  /// scheduler has the shift of that.
  std::optional<InDiffusers> in_diffusers = {};
  /// Numbers of given latent frames in training, of a network that continues frames.
  std::span<const int> condition_frames = {};
  /// Returns the form of a model that differs from this one in numbers. Null: none differs.
  const PipelineForm& (*of_model)(const PipelineModel& model) = nullptr;
};

}  // namespace vfm::models
