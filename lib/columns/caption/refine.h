// Rewrites captions with a language model, which sees no frames (vfm-caption --refine DIR,
// models/vlm/text_model.h).
//
// The draft is a sample's caption from any source, before it is cut to a number of characters.
// KEY.json keeps it as "caption_draft", with "caption_refined_by". "caption_cut" then refers to the
// new text, and "caption_draft_cut" to the draft. If the model fails, the draft stays the caption,
// and an error is recorded.
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
  /// `as`: how the model runs and chooses tokens. Throws Error{usage} if the folder has no language
  /// model, or its chat template cannot take the prompt.
  Refiner(const RefineOptions& options, const ModelCaptionOptions& as);

  /// Rewrites a sample's caption, which must not be empty. `name`: the sample's name in errors.
  /// Throws Stopped.
  void refine(const std::string& key, const std::string& name, Caption& caption,
              ColumnNotes& notes) const;
  /// Returns all that decides the texts: the model's config() and the options.
  const Json& config() const { return config_; }

 private:
  models::TextModel model_;
  std::string prompt_;
  models::AnswerRule rule_;
  HeldJson config_;
};

}  // namespace vfm::columns
