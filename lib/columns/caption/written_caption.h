// The tokens of a model's caption, and the log-probabilities of the tokens. vfm-caption --logprobs
// stores the tokens in the caption column's KEY.json:
//
//   "caption_written": {"ids": [...], "logprobs": [...], "picture": true}
//
// "picture" is present only for a still picture. A log-probability is computed before temperature
// and penalty are applied, and has six digits. `vfm-caption score` uses the stored values in place
// of the clip.
// Thread-safety: pure functions.
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

/// Returns the tokens as JSON, or null if the answer has no tokens.
Json written_json(const models::Answer& answer, bool still);

/// Returns the tokens in a sample's KEY.json. Returns nothing if the text of the tokens is not
/// `caption`, or if another model or other settings were used. `asked` has this run's settings:
/// config() of the model, "fps", "window" and prompts.
std::optional<WrittenCaption> find_written(const Json& facts, const std::string& caption,
                                           const models::CaptionModel& model, const Json& asked);

}  // namespace vfm::columns
