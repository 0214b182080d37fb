// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/checkpoint_contents.h"

#include "base/json.h"
#include "io/file.h"
#include "models/folder/checkpoint_folder.h"
#include "models/folder/lora_file.h"

namespace vfm::train {
namespace {

/// What an optimizer keeps, into the sets of `folder`.
void add_state(const Optimizer& optimizer, const std::string& folder, std::uint64_t max_file_bytes,
               std::vector<SavedSet>& sets) {
  const auto add = [&](const std::string& name, const nn::ParameterList& of,
                       const std::vector<Tensor>& tensors) {
    const auto view = [&tensors](std::size_t i, std::int64_t begin, std::int64_t end) {
      return std::vector{tensors[i].reshape({tensors[i].elements()}).rows(begin, end)};
    };
    sets.push_back({folder, name, tensors.front().dtype(), view, of, max_file_bytes});
  };
  for (const OptimizerState& state : optimizer.state())
    add(state.name, state.parameters, state.tensors);
  if (optimizer.has_ema()) add("ema", optimizer.parameters(), optimizer.ema());
}

}  // namespace

std::string folder_of(const OtherState& other) {
  return io::join_path("networks", other.name);
}

std::vector<SavedSet> sets_of(const Checkpoint& checkpoint, std::uint64_t max_file_bytes) {
  const nn::ParameterList& parameters = checkpoint.optimizer.parameters();
  const auto values_of = [](const nn::ParameterList& of) {
    return [&of](std::size_t i, std::int64_t begin, std::int64_t end) {
      return of[i]->view(begin, end);
    };
  };
  std::vector<SavedSet> sets;
  if (checkpoint.adapters.empty()) {
    sets.push_back({"model", models::kWeightsName, DType::f32, values_of(parameters), parameters,
                    max_file_bytes});
  } else {
    // Programs look for these under one name.
    constexpr std::uint64_t kNone = ~std::uint64_t{0};
    const std::string lora = models::lora_folder("");
    sets.push_back({lora, models::kLoraName, DType::f32, values_of(parameters), parameters, kNone,
                    std::string(models::kLoraPrefix), checkpoint.adapters});
    sets.push_back({lora, models::kPeftName, DType::f32, values_of(parameters), parameters, kNone,
                    std::string(models::kPeftPrefix)});
  }
  add_state(checkpoint.optimizer, "state", max_file_bytes, sets);
  for (const OtherState& other : checkpoint.others) {
    const nn::ParameterList& own = other.optimizer.parameters();
    sets.push_back(
        {folder_of(other), models::kWeightsName, DType::f32, values_of(own), own, max_file_bytes});
    add_state(other.optimizer, folder_of(other), max_file_bytes, sets);
  }
  return sets;
}

std::map<std::string, std::string> texts_of(const Checkpoint& checkpoint) {
  std::map<std::string, std::string> texts = {
      {"model/config.json", dump_json_pretty(checkpoint.config)},
      {"train.json", dump_json_pretty(checkpoint.train)}};
  if (!checkpoint.adapters.empty()) {
    const std::string base =
        get_string(checkpoint.train->value("init", Json()), "path").value_or("");
    texts[io::join_path(models::lora_folder(""), "adapter_config.json")] =
        dump_json_pretty(models::peft_config(models::lora_settings(checkpoint.adapters), base));
  }
  return texts;
}

}  // namespace vfm::train
