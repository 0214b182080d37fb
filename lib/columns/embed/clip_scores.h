// Scores of a clip for filters, computed from vectors: how much people like its frames
// (--aesthetic), how well its caption fits (--text-image), and how much of a concept it shows
// (--concept). They stand in KEY.json:
//
//   "aesthetic": 5.61            the mean of the scores of the frames that were encoded
//   "concept_fox": 0.24          cosine of the clip's vector and the prompt's
//   "text_image": 0.27           cosine of the clip's vector and the caption's
//   "scored_by": {"aesthetic": {"head": "mlp", "hash": ...}, "texts": {"name": "sentence:clip",
//                 "hash": ..., ...}, "concepts": {"fox": "a photo of a fox"}}
//
// Numbers are rounded to six digits. Thread-safety: const members from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/held_json.h"
#include "base/json_fwd.h"
#include "columns/embed/clip_vector.h"
#include "columns/model_place.h"
#include "models/encoder/aesthetic_head.h"
#include "models/encoder/picture_encoder.h"
#include "tensor/tensor.h"
#include "text/encoder.h"

namespace vfm::columns {

struct Concept {
  std::string name;  ///< a to z, 0 to 9 and '_', at most 40
  std::string prompt;
};

/// Parses "NAME=TEXT" and "NAME=@FILE", each of another name. Throws Error{usage}.
std::vector<Concept> parse_concepts(const std::vector<std::string>& texts);

struct ClipScoreOptions {
  std::string aesthetic;  ///< the file of a head; empty: none
  bool text_image = false;
  std::vector<Concept> concepts;

  bool any() const { return !aesthetic.empty() || text_image || !concepts.empty(); }
  /// Whether clips are compared with texts.
  bool texts() const { return text_image || !concepts.empty(); }
};

class ClipScores {
 public:
  /// `folder`, of `encoder`, has a tower and a tokenizer for texts if these are compared; they run
  /// at `place` in `compute`. Throws Error{usage}: it has none, or a head that does not fit.
  ClipScores(const ClipScoreOptions& options, const models::PictureEncoder& encoder,
             const std::string& folder, const ModelPlace& place, DType compute);

  bool text_image() const { return text_image_; }
  /// The score for the vector of a frame, of length 1. Empty without --aesthetic.
  FrameScore frame_score() const;
  /// The fields of a clip, without "text_image" and "scored_by".
  Json of_clip(const ClipVector& clip) const;
  /// The vectors of captions, in order, of length 1; empty if not finite.
  std::vector<std::vector<float>> encode(const std::vector<std::string>& captions) const;
  /// "text_image".
  static double fit(const std::vector<float>& clip, const std::vector<float>& caption);
  /// "scored_by".
  const Json& config() const { return config_; }

 private:
  void open_texts(const ClipScoreOptions& options, const models::PictureEncoder& encoder,
                  const std::string& folder, const ModelPlace& place, DType compute);

  std::optional<models::AestheticHead> head_;
  bool text_image_ = false;
  std::unique_ptr<text::Encoder> texts_;
  std::vector<Concept> concepts_;
  std::vector<std::vector<float>> prompts_;  // of the concepts, of length 1
  HeldJson config_ = HeldJson::object();
};

}  // namespace vfm::columns
