// SPDX-License-Identifier: Apache-2.0
#include "train/encoded/encoder_cost.h"

#include <algorithm>
#include <cstdint>

#include "base/json.h"
#include "models/cosmos/cost.h"
#include "models/cosmos/decode_split.h"
#include "models/cosmos/tokenizer.h"
#include "tensor/meta.h"

namespace vfm::train {
namespace {

double places_of_form(const data::Form& form) {
  return static_cast<double>(form.frames) * form.height * form.width;
}

models::PartCost cost_of_network(const Encoders& encoders, const data::Form& form) {
  const Device device = encoders.device();
  const models::CosmosFolder folder = models::inspect_cosmos(encoders.tokenizer_config(), device);
  const std::int64_t step =
      models::cosmos_step(folder.config, models::CosmosWork::encode, form.frames, form.height,
                          form.width, {}, device, folder.compute);
  return models::cosmos_cost(folder.config, models::CosmosWork::encode, form.frames, form.height,
                             form.width, step, device, folder.compute);
}

models::PartCost cost_of_builtin(const Encoders& encoders, const data::Form& form) {
  const int frames = 1 + (form.frames - 1) * encoders.time_factor();
  const int height = form.height * encoders.space_factor();
  const int width = form.width * encoders.space_factor();
  const Tensor pixels({3, frames, height, width}, DType::f32, Device::meta);
  const MetaAccount account(encoders.device());
  models::make_tokenizer(encoders.tokenizer_config(), Device::meta)
      ->encode({pixels.data<float>(), static_cast<std::size_t>(pixels.elements())}, frames, height,
               width);
  models::PartCost cost;
  cost.take(account, 0);
  return cost;
}

EncoderCost cost_of_tokenizer(const Encoders& encoders, const data::SampleIndex& index) {
  const std::span<const data::Form> forms = index.forms();
  const data::Form largest = *std::ranges::max_element(forms, {}, places_of_form);
  double places = 0;
  for (const data::Form& form : forms)
    places += places_of_form(form) * static_cast<double>(form.count);
  EncoderCost cost{"tokenizer", encoders.tokenizer_config().name, {}};
  cost.cost = models::is_cosmos_tokenizer(cost.name) ? cost_of_network(encoders, largest)
                                                     : cost_of_builtin(encoders, largest);
  cost.cost.repeat(places / static_cast<double>(index.size()) / places_of_form(largest));
  return cost;
}

/// Of captions that are taken to be as long as can be, as their clips' index says.
EncoderCost cost_of_text(const Encoders& encoders, const data::SampleIndex& index) {
  const text::EncoderConfig& config = *encoders.text_config();
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
