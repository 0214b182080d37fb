// Scores computed from a clip's vectors. The score of --aesthetic predicts how much people like the
// frames. The scores of --text-image and --concept tell how well a caption or a prompt fits the
// clip. KEY.json has the scores:
//
//   "aesthetic": 5.61            mean score of the encoded frames
//   "concept_fox": 0.24          cosine of the clip's vector and the prompt's vector
//   "text_image": 0.27           cosine of the clip's vector and the caption's vector
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
  std::string name;  ///< Name of at most 40 characters: a to z, 0 to 9 and '_'.
  std::string prompt;
};

/// Parses texts "NAME=TEXT" or "NAME=@FILE", whose names must differ. Throws Error{usage}.
std::vector<Concept> parse_concepts(const std::vector<std::string>& texts);

struct ClipScoreOptions {
  std::string aesthetic;  ///< File of an aesthetic head, or empty.
  bool text_image = false;
  std::vector<Concept> concepts;

  bool any() const { return !aesthetic.empty() || text_image || !concepts.empty(); }
  /// Returns whether clips are compared with texts.
  bool texts() const { return text_image || !concepts.empty(); }
};

class ClipScores {
 public:
  /// `folder` is the folder of `encoder`. If clips are compared with texts, the folder's text tower
  /// runs at `place` with the type `compute`. Throws Error{usage} if the text tower or its
  /// tokenizer is missing, or if the aesthetic head does not fit `encoder`.
  ClipScores(const ClipScoreOptions& options, const models::PictureEncoder& encoder,
             const std::string& folder, const ModelPlace& place, DType compute);

  bool text_image() const { return text_image_; }
  /// Returns a function that computes the aesthetic score of a frame's unit vector. Without
  /// --aesthetic the function is empty.
  FrameScore frame_score() const;
  /// Returns the clip's scores for KEY.json, except "text_image".
  Json of_clip(const ClipVector& clip) const;
  /// Returns the unit vectors of the captions, in order. In place of a vector that is not finite,
  /// returns an empty vector.
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
