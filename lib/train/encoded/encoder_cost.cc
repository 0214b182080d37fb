// SPDX-License-Identifier: Apache-2.0
#include "train/encoded/encoder_cost.h"

#include <algorithm>
#include <cstdint>

#include "base/json.h"

namespace vfm::train {
namespace {

double places_of_form(const data::Form& form) {
  return static_cast<double>(form.frames) * form.height * form.width;
}

EncoderCost cost_of_tokenizer(const Encoders& encoders, const data::SampleIndex& index) {
  const std::span<const data::Form> forms = index.forms();
  const data::Form largest = *std::ranges::max_element(forms, {}, places_of_form);
  double places = 0;
  for (const data::Form& form : forms)
    places += places_of_form(form) * static_cast<double>(form.count);
  EncoderCost cost{"tokenizer", encoders.tokenizer_config().name, {}};
  cost.cost =
      encoders.tokenizer_facts().cost({true, largest.frames, largest.height, largest.width}).cost;
  cost.cost.repeat(places / static_cast<double>(index.size()) / places_of_form(largest));
  return cost;
}

/// Of captions that are taken to be as long as can be, as their clips' index says.
EncoderCost cost_of_text(const Encoders& encoders, const data::SampleIndex& index) {
  text::EncoderConfig config = *encoders.text_config();
  config.hash.clear();  // it is that of the folder
  EncoderCost cost{"text encoder", config.name, {}};
  if (config.path.empty()) return cost;
  double tokens = 0;
  int most = 1;
  for (std::size_t i = 0; i < index.size(); ++i) {
    tokens += index.text_tokens(i);
    most = std::max(most, index.text_tokens(i));
  }
  const models::TextEncoderFolder folder =
      models::inspect_text_encoder(config, {.device = encoders.device()});
  cost.cost = folder.cost(most, encoders.device());
  cost.cost.repeat(tokens / static_cast<double>(index.size()) / most);
  return cost;
}

}  // namespace

std::vector<EncoderCost> encoder_costs(const Encoders& encoders, const data::SampleIndex& index) {
  std::vector<EncoderCost> costs = {cost_of_tokenizer(encoders, index)};
  if (encoders.has_text()) costs.push_back(cost_of_text(encoders, index));
  return costs;
}

double encoder_bytes(const std::vector<EncoderCost>& costs) {
  double weights = 0, activations = 0;  // they work in turn
  for (const EncoderCost& one : costs) {
    weights += one.cost.weight_bytes;
    activations = std::max({activations, one.cost.activation_bytes, one.cost.held_bytes});
  }
  return weights + activations;
}

Json encoder_json(const std::vector<EncoderCost>& costs, double samples_a_step) {
  const auto whole = [](double value) { return static_cast<std::int64_t>(value); };
  Json all = Json::array();
  for (const EncoderCost& one : costs)
    all.push_back({{"part", one.part},
                   {"name", one.name},
                   {"parameters", one.cost.parameters},
                   {"weight_bytes", whole(one.cost.weight_bytes)},
                   {"activation_bytes", whole(one.cost.activation_bytes)},
                   {"flops_per_step", one.cost.flops * samples_a_step}});
  return all;
}

std::vector<models::TimeLine> encoder_lines(const std::vector<EncoderCost>& costs,
                                            double samples_a_step, int ranks,
                                            const models::Gpu& gpu) {
  std::vector<models::TimeLine> lines;
  for (const EncoderCost& one : costs) {
    models::PartCost share = one.cost;
    share.repeat(samples_a_step / ranks);
    models::TimeLine line = models::sum_of(one.part, models::predict(gpu, share.calls));
    if (line.seconds > 0) lines.push_back(line);
  }
  return lines;
}

}  // namespace vfm::train
