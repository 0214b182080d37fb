// SPDX-License-Identifier: Apache-2.0
#include "columns/caption/refine.h"

#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "text/unicode.h"

namespace vfm::columns {

Refiner::Refiner(const RefineOptions& options, const ModelCaptionOptions& as)
    : model_(as.place().rewriting(options.folder, as.compute, as.int8)),
      prompt_(options.prompt),
      rule_(as.rule) {
  model_.check_instruction(prompt_);
  config_ = model_.config();
  config_["prompt"] = prompt_;
  add_rule(config_, rule_);
}

void Refiner::refine(const std::string& key, const std::string& name, Caption& caption,
                     ColumnNotes& notes) const {
  if (caption.text.empty()) return;
  Json& fields = caption.by_model;
  try {
    const models::Answer answer = model_.answer(prompt_, caption.text, rule_, key + "\nrefine");
    std::string text = text::clean_line(answer.text);
    if (text.empty()) fail("the model has written nothing");
    fields["caption_draft"] = std::exchange(caption.text, std::move(text));
    if (fields.erase("caption_cut") > 0) fields["caption_draft_cut"] = true;
    if (answer.cut) fields["caption_cut"] = true;
    fields["caption_refined_by"] = config_;
    count_cut(notes, answer.cut ? 1 : 0);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::device) throw;
    notes.errors.emplace_back(name, fmt::format("its caption is not refined: {}", error.what()),
                              error.cause());
  }
}

}  // namespace vfm::columns
