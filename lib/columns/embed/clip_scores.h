// Scores for filters, computed from a clip's vectors: how much people like the frames
// (--aesthetic), how well the caption fits (--text-image), and how much the clip shows of a concept
// (--concept). They are written to KEY.json:
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

/// Parses "NAME=TEXT" and "NAME=@FILE" with distinct names. Throws Error{usage}.
std::vector<Concept> parse_concepts(const std::vector<std::string>& texts);

struct ClipScoreOptions {
  std::string aesthetic;  ///< file of an aesthetic head; empty: none
  bool text_image = false;
  std::vector<Concept> concepts;

  bool any() const { return !aesthetic.empty() || text_image || !concepts.empty(); }
  /// Returns true if clips are compared with texts.
  bool texts() const { return text_image || !concepts.empty(); }
};

class ClipScores {
 public:
  /// `folder`: of `encoder`. To compare texts it must have a text tower, which runs at `place` in
  /// `compute`, and a tokenizer. Throws Error{usage} if tower or tokenizer is missing, or the
  /// aesthetic head does not fit `encoder`.
  ClipScores(const ClipScoreOptions& options, const models::PictureEncoder& encoder,
             const std::string& folder, const ModelPlace& place, DType compute);

  bool text_image() const { return text_image_; }
  /// Returns a function for the aesthetic score of a frame's unit vector. The function is empty
  /// without --aesthetic.
  FrameScore frame_score() const;
  /// Returns the clip's fields except "text_image" and "scored_by".
  Json of_clip(const ClipVector& clip) const;
  /// Returns the unit vectors of the captions, in order. A vector that is not finite becomes empty.
  std::vector<std::vector<float>> encode(const std::vector<std::string>& captions) const;
  /// Returns the value of "text_image".
  static double fit(const std::vector<float>& clip, const std::vector<float>& caption);
  /// Returns the value of "scored_by".
  const Json& config() const { return config_; }

 private:
  void open_texts(const ClipScoreOptions& options, const models::PictureEncoder& encoder,
                  const std::string& folder, const ModelPlace& place, DType compute);

  std::optional<models::AestheticHead> head_;
  bool text_image_ = false;
  std::unique_ptr<text::TextEncoder> texts_;
  std::vector<Concept> concepts_;
  std::vector<std::vector<float>> prompts_;  // unit vectors of the concepts
  HeldJson config_ = HeldJson::object();
};

}  // namespace vfm::columns
