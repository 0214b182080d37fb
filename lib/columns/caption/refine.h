// Rewrites captions with a language model (vfm-caption --refine DIR, models/vlm/text_model.h). The
// model sees no frames.
//
// The old caption is called the draft. The draft may have any source and any length. KEY.json has
// "caption_draft" and "caption_refined_by". "caption_cut" refers to the new caption, and
// "caption_draft_cut" to the draft. If the model fails, the draft stays the caption, and an error
// is recorded.
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
  /// `as` has the settings of the model. Throws Error{usage} if the folder has no language model,
  /// or if the model's chat template cannot take the prompt.
  Refiner(const RefineOptions& options, const ModelCaptionOptions& as);

  /// Rewrites a sample's caption, which must not be empty. `name` is the sample's name in errors.
  /// Throws Stopped.
  void refine(const std::string& key, const std::string& name, Caption& caption,
              ColumnNotes& notes) const;
  /// Returns the model's config() and the options that affect the captions.
  const Json& config() const { return config_; }

 private:
  models::TextModel model_;
  std::string prompt_;
  models::AnswerRule rule_;
  HeldJson config_;
};

}  // namespace vfm::columns
