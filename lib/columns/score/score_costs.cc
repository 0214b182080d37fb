// SPDX-License-Identifier: Apache-2.0
#include "columns/score/score_costs.h"

#include "base/format.h"
#include "base/json.h"
#include "base/rounding.h"

namespace vfm::columns {

void ScoreCosts::add(double with, double without) {
  const std::lock_guard lock(mutex_);
  ++clips_;
  written_ += with > 0 ? 0 : 1;
  with_ += with;
  without_ += without;
}

Json ScoreCosts::to_json() const {
  const std::lock_guard lock(mutex_);
  if (clips_ == 0) return nullptr;
  const auto of_clip = [&](double sum) { return six_digits(sum / static_cast<double>(clips_)); };
  return {{"clips", clips_},
          {"written", written_},
          {"flops", {{"with_video", of_clip(with_)}, {"alone", of_clip(without_)}}}};
}

std::string ScoreCosts::words() const {
  const Json told = to_json();
  if (told.is_null()) return "";
  const auto tera = [&](const char* name) {
    return told.at("flops").at(name).get<double>() / 1e12;
  };
  return vfm::format(
      "a caption of the sample costs the captioner {:.3g} TFLOP with the video, which it need not "
      "see again for {} of {}, and {:.3g} without\n",
      tera("with_video"), told.at("written").get<std::int64_t>(),
      told.at("clips").get<std::int64_t>(), tera("alone"));
}

}  // namespace vfm::columns
