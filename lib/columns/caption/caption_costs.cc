// SPDX-License-Identifier: Apache-2.0
#include "columns/caption/caption_costs.h"

#include <algorithm>

#include "base/error.h"
#include "base/json.h"
#include "base/rounding.h"
#include "base/units.h"
#include "tensor/program_memory.h"

namespace vfm::columns {

void CaptionCosts::add(const models::CaptionModel& model,
                       std::span<const models::Question> questions,
                       std::span<const models::Answer> answers) {
  bool looked = false;
  for (std::size_t i = 0; i < questions.size(); ++i) {
    if (answers[i].error) continue;
    const models::AnswerCost cost = model.cost(questions[i], answers[i].tokens);
    std::size_t bytes = 0;
    for (const auto& frame : questions[i].seen->frames)
      bytes += frame.size();
    const models::WeightCost weights = model.weights();
    const std::lock_guard lock(mutex_);
    weights_ = weights;
    gpu_ = model.device() == Device::cuda;
    further_ |= questions.size() > 1;
    if (!looked) sum_.looked += cost.looked;
    sum_.read += looked ? cost.read - cost.head : cost.read;
    looked = true;
    measure_program();
    sum_.written += cost.written;
    sum_.prompt_tokens += cost.prompt_tokens;
    tokens_ += static_cast<double>(answers[i].tokens);
    sum_.keys_values = std::max(sum_.keys_values, cost.keys_values);
    sum_.working = std::max(sum_.working, cost.working);
    frames_ = std::max(frames_, bytes);
  }
}

/// Measures the memory of the process without frames and tensors. The peak of tensors is
/// subtracted, because allocators keep freed memory.
void CaptionCosts::measure_program() {
  const double others = static_cast<double>(cpu_memory().peak) +
                        static_cast<double>(std::max<std::int64_t>(0, held_));
  program_ = std::max(program_, anonymous_memory() - others);
}

void CaptionCosts::hold_frames(std::int64_t bytes) {
  const std::lock_guard lock(mutex_);
  held_ += bytes;
}

void CaptionCosts::add_clip() {
  const std::lock_guard lock(mutex_);
  ++clips_;
}

Json CaptionCosts::to_json() const {
  const std::lock_guard lock(mutex_);
  if (clips_ == 0) return nullptr;
  const auto of_clip = [&](double sum) { return six_digits(sum / static_cast<double>(clips_)); };
  const auto together = static_cast<std::size_t>(models::kAnswersTogether);
  // A GPU has only the frames that it encodes, as patches.
  const std::size_t of_text = sum_.keys_values + (gpu_ ? 0 : frames_);
  const auto program = static_cast<std::size_t>(program_);
  Json told = {{"clips", clips_},
               {"weights", weights_.stored},
               {"own_weights", weights_.own},
               {"together", together},
               {"keys_values", sum_.keys_values},
               {"working", sum_.working},
               {"frames", frames_},
               {"program", program},
               {"memory", weights_.own + sum_.working + together * of_text +
                              (further_ ? sum_.keys_values : 0) + (gpu_ ? 0 : program)},
               {"prompt_tokens", of_clip(static_cast<double>(sum_.prompt_tokens))},
               {"text_tokens", of_clip(tokens_)},
               {"flops",
                {{"vision", of_clip(sum_.looked)},
                 {"prompt", of_clip(sum_.read)},
                 {"text", of_clip(sum_.written)}}}};
  if (gpu_) told["device"] = "cuda";
  return told;
}

std::string CaptionCosts::words() const {
  const Json told = to_json();
  if (told.is_null()) return "";
  const bool gpu = told.contains("device");
  const auto bytes = [&](const char* name) { return format_bytes(told.at(name)); };
  const auto tera = [&](const char* name) {
    return told.at("flops").at(name).get<double>() / 1e12;
  };
  return fmt::format(
      "the model has {} of weights in its files\n"
      "it takes {} of {}memory: {} of weights, {} to look at a clip and read its prompt{}, and for "
      "each of {} texts {} of keys and values and {} of frames{}\n"
      "a clip of the sample costs it {:.3g} TFLOP to look, {:.3g} to read {:.0f} tokens, and "
      "{:.3g} to write {:.0f}\n",
      bytes("weights"), bytes("memory"), gpu ? "the GPU's " : "", bytes("own_weights"),
      bytes("working"), gpu ? "" : fmt::format(", {} of the program itself", bytes("program")),
      told.at("together").get<int>(), bytes("keys_values"), bytes("frames"),
      gpu ? " (these in the host's)" : "", tera("vision"), tera("prompt"),
      told.at("prompt_tokens").get<double>(), tera("text"), told.at("text_tokens").get<double>());
}

}  // namespace vfm::columns
