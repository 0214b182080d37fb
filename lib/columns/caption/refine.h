// The second pass over a caption: a language model, which sees no frames, rewrites it
// (vfm-caption --refine DIR, models/vlm/text_model.h).
//
// The draft is the whole caption of a sample, whatever its source, before it is cut to a number of
// characters. It stays in KEY.json as "caption_draft", with "caption_refined_by"; "caption_cut"
// then refers to the second model's text, and "caption_draft_cut" to the draft. A draft that cannot
// be refined stays the caption, and an error is recorded.
// Thread-safety: const members from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/held_json.h"
#include "base/json_fwd.h"
#include "columns/caption/caption_queue.h"
#include "columns/caption/model_caption.h"
#include "columns/column_job.h"
#include "models/vlm/text_model.h"

namespace vfm::columns {

class Refiner {
 public:
  /// `as`: how the model computes, and its rule of writing. Throws Error{usage} for a folder that
  /// holds no such model, or a prompt that has no place in its chat.
  Refiner(const RefineOptions& options, const ModelCaptionOptions& as);

  /// Refines a sample's caption, which is not empty. `name`: the sample's name in errors. Throws
  /// Stopped.
  void refine(const std::string& key, const std::string& name, Caption& caption,
              ColumnNotes& notes) const;
  /// All that decides the texts: the model's config() and the options.
  const Json& config() const { return config_; }

 private:
  models::TextModel model_;
  std::string prompt_;
  models::AnswerRule rule_;
  HeldJson config_;
};

}  // namespace vfm::columns
