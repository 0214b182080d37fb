// The request for one clip, and the check that a model can make it. The check is the same in a run
// and in a dry run without weights. generate/request/prompts.h makes requests from prompts.
// Shape letters: C latent channels, t h w latent frames, rows, columns.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "models/decoder/decoder.h"
#include "models/dit/network.h"
#include "models/folder/model_facts.h"
#include "text/encoder.h"

namespace vfm::generate {

using models::Extents;
using models::ModelFacts;

inline constexpr int kLargestSide = 16384;  ///< largest width or height of a clip, pixels

/// Pixels that a clip begins with: float RGB in [-1, 1], planar (3, frames, H, W), with the clip's
/// H and W. There are one plus n x time_factor frames for some n.
struct GivenFrames {
  int frames = 0;
  std::vector<float> pixels;
};

/// One clip of any size and length. A clip that is not a whole number of tokens is generated larger
/// and then cut, equally at both edges, and in time at the end.
struct ClipRequest {
  std::string prompt;    ///< UTF-8, may be empty
  std::string negative;  ///< text to avoid; empty: none
  std::uint64_t seed = 0;
  int frames = 0, height = 0, width = 0;  ///< size in pixels, at least 1
  double fps = 0;                         ///< frames per second that the model is given; above 0
  /// For video-to-world models: the first frames; null: none.
  std::shared_ptr<const GivenFrames> given;
  /// The first noise, of unit variance, (C, t, h, w); null: drawn from seed and prompt.
  std::shared_ptr<const std::vector<float>> noise;
  /// The network's inputs for the prompt and the negative prompt; null: the text encoder makes
  /// them.
  std::shared_ptr<const text::TokenEmbeddings> embedding, negative_embedding;
};

/// Facts about a model that decide which clips it can make. Thread-safety: const members.
struct ModelShape {
  int channels = 0, vocabulary = 0, time_factor = 1, space_factor = 1;  ///< of the tokenizer
  bool autoregressive = false;            ///< false: a diffusion model
  int codes = 0;                          ///< of an autoregressive model: number of codes
  bool continues_only = false;            ///< it cannot make the first frame
  int in_channels = 0, out_channels = 0;  ///< of a diffusion model
  models::GivenFramesBy given = models::GivenFramesBy::none;  ///< of a diffusion model
  std::array<int, 3> patch = {1, 1, 1};                       ///< latents of a token, (t, h, w)
  int text_width = 0;     ///< width of the text that the network takes; 0: none
  int encoder_width = 0;  ///< width of the text encoder's output; 0: no encoder
  /// The model was trained on embeddings that no encoder here makes: it cannot take prompts.
  bool foreign_text = false;

  void take(const models::NetworkConfig& network, const ModelFacts& facts);
  void take(const models::DecoderConfig& decoder);

  /// Returns whether the model takes given frames, as video-to-world and all autoregressive models
  /// do.
  bool video_to_world() const { return autoregressive || given != models::GivenFramesBy::none; }
  /// Returns whether a model that takes given frames was trained with one, a picture.
  bool takes_picture() const;
  bool reads_text() const { return encoder_width > 0; }
  /// The extents of the latent that a clip is cut from, for a size that check_size() accepts; and
  /// the extents of the pixels that a latent decodes to.
  Extents latent_of(const ClipRequest& request) const;
  Extents pixels_of(const Extents& latent) const;

  /// Throws Error if the parts of the model in `folder` do not fit together.
  void check_parts(const ModelFacts& facts, const std::string& folder) const;
  /// Throws Error{usage} for a size, length or rate that no clip can have.
  void check_size(const ClipRequest& request) const;
  /// Throws Error{usage} if the model takes no given frames.
  void check_takes_frames() const;
  /// Throws Error{usage} if the model reads no text embeddings.
  void check_takes_embeddings() const;
  /// Throws Error{usage} for a clip that the model cannot make.
  void check(const ClipRequest& request) const;

 private:
  int channels_in() const;  ///< that the network must have
  void check_given(const ClipRequest& request) const;
  void check_text(const ClipRequest& request) const;
};

}  // namespace vfm::generate
