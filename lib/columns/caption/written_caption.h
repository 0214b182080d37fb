// The tokens of a model's caption and their log-probabilities, which vfm-caption --logprobs keeps
// for vfm-caption score in the caption column's KEY.json:
//
//   "caption_written": {"ids": [...], "logprobs": [...]}     "picture": true where no video was
//   seen
//
// ln p of a token is as the model has it, without temperature or penalty, to six digits. So the
// model need not see the clip again: only the probability without the clip is still unknown. Pure.
// Thread-safety: any thread.
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

/// The tokens in a sample's KEY.json if they give `caption`, and were written by `model`, asked as
/// `asked` says: config() with "fps", "window" and prompts. Else nothing.
std::optional<WrittenCaption> find_written(const Json& facts, const std::string& caption,
                                           const models::CaptionModel& model, const Json& asked);

}  // namespace vfm::columns
