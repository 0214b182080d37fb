// SPDX-License-Identifier: Apache-2.0
#include "columns/caption/written_caption.h"

#include <algorithm>
#include <limits>

#include "base/json.h"
#include "base/rounding.h"
#include "text/unicode.h"

namespace vfm::columns {
namespace {

/// The settings of a model that decide the probability of a text.
constexpr const char* kDeciding[] = {"name",    "hash", "words",  "compute", "input",
                                     "weights", "fps",  "window", "prompt",  "picture_prompt"};

bool same_model(const Json& wrote, const Json& asked) {
  const auto of = [](const Json& config, const char* name) {
    const auto found = config.find(name);
    return found == config.end() ? Json() : *found;
  };
  return wrote.is_object() &&
         std::all_of(std::begin(kDeciding), std::end(kDeciding),
                     [&](const char* name) { return of(wrote, name) == of(asked, name); });
}

bool is_token(const Json& id) {
  return id.is_number_integer() && id >= 0 && id <= std::numeric_limits<std::int32_t>::max();
}

/// Returns true for a probability's logarithm. Much lower values could have infinite sums.
bool is_logarithm(const Json& value) {
  constexpr double kLeastLogarithm = -1e6;
  return value.is_number() && value.get<double>() <= 0 && value.get<double>() >= kLeastLogarithm;
}

}  // namespace

Json written_json(const models::Answer& answer, bool still) {
  if (answer.ids.empty()) return nullptr;
  Json logprobs = Json::array();
  for (const double one : answer.log_probabilities)
    logprobs.push_back(six_digits(one));
  Json written = {{"ids", answer.ids}, {"logprobs", std::move(logprobs)}};
  if (still) written["picture"] = true;
  return written;
}

std::optional<WrittenCaption> find_written(const Json& facts, const std::string& caption,
                                           const models::CaptionModel& model, const Json& asked) {
  const auto written = facts.find(kWrittenField), wrote = facts.find("caption_model");
  if (written == facts.end() || wrote == facts.end() || !written->is_object() ||
      !same_model(*wrote, asked))
    return std::nullopt;
  const Json ids = written->value("ids", Json()), logprobs = written->value("logprobs", Json());
  if (!ids.is_array() || !logprobs.is_array() || ids.empty() || ids.size() != logprobs.size() ||
      !std::all_of(ids.begin(), ids.end(), is_token) ||
      !std::all_of(logprobs.begin(), logprobs.end(), is_logarithm))
    return std::nullopt;
  WrittenCaption found{ids.get<std::vector<std::int32_t>>(), logprobs.get<std::vector<double>>(),
                       written->contains("picture")};
  if (text::clean_line(model.text(found.ids)) != caption) return std::nullopt;
  return found;
}

}  // namespace vfm::columns
