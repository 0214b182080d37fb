// The tokens of a caption that a model wrote, with how likely each was, as vfm-caption --logprobs
// keeps them for --score, in the caption column's KEY.json:
//
//   "caption_written": {"ids": [...], "logprobs": [...]}     "picture": true where no video was
//   seen
//
// ln p of a token is as the model has it, without temperature or penalty, to six digits. The model
// need not be shown the clip again: what is still to be known of the caption is how likely it is
// without. Pure. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "models/vlm/caption_model.h"

namespace vfm::columns {

inline constexpr const char* kWrittenField = "caption_written";

struct WrittenCaption {
  std::vector<std::int32_t> ids;
  std::vector<double> log_probabilities;
  bool still = false;
};

/// Null where the answer has no tokens.
Json written_json(const models::Answer& answer, bool still);

/// Of a sample's KEY.json, if it has them, they say `caption`, and the model that wrote it is
/// `model` and was asked as `asked` says: config() with "fps", "window" and prompts. Whatever else
/// stands there is nothing.
std::optional<WrittenCaption> find_written(const Json& facts, const std::string& caption,
                                           const models::CaptionModel& model, const Json& asked);

}  // namespace vfm::columns
