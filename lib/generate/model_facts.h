// What generation needs of a model besides its weights: the train.json of a checkpoint
// (vfm-checkpoint(5)), or the same made from a diffusers folder (generate/pipeline.h).
// Thread-safety: pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/json.h"
#include "generate/sampler.h"
#include "models/dit/edm.h"

namespace vfm::generate {

/// Extents of a latent, or of pixels.
struct Extents {
  int frames = 1, height = 0, width = 0;
};

struct ModelFacts {
  Json tokenizer;             ///< for make_tokenizer()
  Json text_encoder;          ///< for make_text_encoder(); null: trained without text
  models::LatentScale scale;  ///< of continuous latents; of codes none
  Extents largest;            ///< latent: of all that the model was trained on
  Extents usual;              ///< latent: what most videos had (stills, if there were no videos)
  double fps = 0;             ///< the rate that most videos had; 0: not known
  SampleOptions sampling;     ///< how clips are sampled by default
  /// Prompts are filled up to this many tokens with zero vectors, all of which are attended to, as
  /// Cosmos was trained; 0: no filling.
  int text_padding = 0;
  /// Whether a prompt without text goes through the encoder, which gives it an end token. Else it
  /// is one zero vector: a sample whose text was dropped in training.
  bool encode_empty = false;
  /// Whether the time input is rounded to bf16, as the network saw it in training.
  bool round_time = false;

  /// Throws Error, naming `what`, for what is missing or cannot be. Absent may be "sampling",
  /// "text_padding" and "encode_empty", where a run did not begin from a model that has them, and
  /// "round_time", which only folders of diffusers have.
  static ModelFacts from_json(const Json& train, const std::string& what);
};

}  // namespace vfm::generate
