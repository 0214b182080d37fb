// SPDX-License-Identifier: Apache-2.0
#include "train/log_sums.h"

namespace vfm::train {

void LogSums::add(const StepResult& result) {
  ++steps;
  if (result.skipped) {
    ++skipped;
    return;
  }
  loss += result.loss;
  gradient_norm = result.gradient_norm;
  learning_rate = result.learning_rate;
}

Json LogSums::to_json() const {
  return {{"image_sum", loss.image_sum},
          {"image_elements", loss.image_elements},
          {"video_sum", loss.video_sum},
          {"video_elements", loss.video_elements},
          {"steps", steps},
          {"skipped", skipped},
          {"grad_norm", gradient_norm},
          {"lr", learning_rate}};
}

LogSums LogSums::from_json(const Json& value) {
  LogSums sums;
  const char* what = "'log' of train.json";
  sums.loss.image_sum = need_number(value, "image_sum", what);
  sums.loss.image_elements = need_number(value, "image_elements", what);
  sums.loss.video_sum = need_number(value, "video_sum", what);
  sums.loss.video_elements = need_number(value, "video_elements", what);
  sums.steps = need_integer(value, "steps", what);
  sums.skipped = need_integer(value, "skipped", what);
  sums.gradient_norm = need_number(value, "grad_norm", what);
  sums.learning_rate = need_number(value, "lr", what);
  return sums;
}

}  // namespace vfm::train
