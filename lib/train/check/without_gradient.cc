// SPDX-License-Identifier: Apache-2.0
#include "train/check/without_gradient.h"

#include <algorithm>
#include <array>
#include <map>

#include "models/dit/architecture.h"
#include "train/data/pack_order.h"
#include "train/kind.h"
#include "train/step/objective.h"

namespace vfm::train {
namespace {

bool has_part(std::string_view name, std::string_view part) {
  return name.find(part) != std::string_view::npos;
}

/// Of queries and keys, which choose among what attention sees.
bool chooses(std::string_view name) {
  constexpr std::array<std::string_view, 8> kParts = {
      ".to_q.", ".to_k.", ".norm_q.", ".norm_k.", ".q_proj.", ".k_proj.", ".q_norm.", ".k_norm."};
  return std::ranges::any_of(kParts, [&](std::string_view part) { return has_part(name, part); });
}

}  // namespace

std::vector<data::Entry> first_samples(const Recipe& recipe, const Dataset& data) {
  PackOrder order(data.order(recipe.train.seed, data::Packing::blocks), data.lengths(recipe.model),
                  recipe.data.pack_options());
  const double dropout = recipe.text_dropout();
  std::vector<data::Entry> samples;
  std::map<std::size_t, std::uint32_t> counted;  // as StepReader does
  for (int p = 0; p < recipe.data.packs; ++p)
    for (const std::size_t i : order.next()) {
      data::Entry& sample = samples.emplace_back(data.entry(i));
      const std::uint32_t again = data.tells_repeats() ? counted[i]++ : 0;
      if (drop_text(dropout, recipe.train.seed, 0, random_name(sample.key, again)))
        sample.text_tokens = 0;
    }
  return samples;
}

std::string why_no_gradient(const std::vector<data::Entry>& samples, const Recipe& recipe,
                            std::string_view parameter) {
  const auto most = [&](const auto& of) {
    int largest = 0;
    for (const data::Entry& sample : samples)
      largest = std::max(largest, of(sample));
    return largest;
  };
  if (has_part(parameter, ".attn_temporal.") && chooses(parameter) &&
      most([](const data::Entry& sample) { return sample.frames; }) <=
          kind_of(recipe.model.type).patch(recipe.model).frames)
    return "no sample of the step has two frames to choose from";
  const bool cross = has_part(parameter, ".attn2.") || has_part(parameter, ".cross_attn") ||
                     has_part(parameter, ".text_embedder.");
  // The modulation of cross-attention, which not every network has.
  const models::NetworkConfig* network = kind_of(recipe.model.type).network(recipe.model);
  const std::string_view norm = network ? network->architecture->text_norm : "";
  const bool modulates = !norm.empty() && has_part(parameter, norm);
  const int text = most([](const data::Entry& sample) { return sample.text_tokens; });
  if ((cross || modulates) && text == 0) return "no sample of the step has a text";
  if (cross && chooses(parameter) &&
      most([&](const data::Entry& sample) { return recipe.text_tokens(sample.text_tokens); }) <= 1)
    return "no sample of the step has two tokens of text to choose from";
  return {};
}

}  // namespace vfm::train
