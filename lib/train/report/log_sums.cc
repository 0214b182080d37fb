// SPDX-License-Identifier: Apache-2.0
#include "train/report/log_sums.h"

#include "base/json.h"

namespace vfm::train {

void LogSums::add(const StepResult& result) {
  ++steps;
  read_bytes += result.read_bytes;
  if (result.skipped) {
    ++skipped;
    return;
  }
  loss += result.loss;
  gradient_norm = result.gradient_norm;
  learning_rate = result.learning_rate;
}

Json LogSums::record(const RunState& state) const {
  Json record = {{"step", state.step}};
  if (loss.elements() > 0) record["loss"] = loss.mean();
  if (loss.image_elements > 0 && loss.video_elements > 0) {
    record["loss_image"] = loss.image_sum / loss.image_elements;
    record["loss_video"] = loss.video_sum / loss.video_elements;
  }
  if (skipped < steps) {
    record["grad_norm"] = gradient_norm;
    record["lr"] = learning_rate;
  }
  record["tokens"] = state.tokens;
  record["samples"] = state.samples;
  record["epoch"] = state.data.epoch;
  record["skipped"] = skipped;
  record["read_bytes"] = read_bytes;
  return record;
}

Json LogSums::to_json() const {
  return {{"image_sum", loss.image_sum},
          {"image_elements", loss.image_elements},
          {"video_sum", loss.video_sum},
          {"video_elements", loss.video_elements},
          {"steps", steps},
          {"skipped", skipped},
          {"read_bytes", read_bytes},
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
  if (value.contains("read_bytes"))  // not in older runs
    sums.read_bytes = need_number(value, "read_bytes", what);
  sums.gradient_norm = need_number(value, "grad_norm", what);
  sums.learning_rate = need_number(value, "lr", what);
  return sums;
}

}  // namespace vfm::train
