// SPDX-License-Identifier: Apache-2.0
#include "train/kind.h"

#include <algorithm>
#include <stdexcept>

#include "base/error.h"
#include "data/clips.h"
#include "data/given_texts.h"
#include "io/file.h"
#include "models/dit/pipeline_stages.h"

namespace vfm::train {

std::span<const Kind* const> kinds() {
  static const Kind* const all[] = {&diffusion_kind(), &code_kind(), &tokenizer_kind()};
  return all;
}

const Kind& kind_of(std::string_view type) {
  for (const Kind* kind : kinds()) {
    const std::vector<std::string_view> types = kind->types();
    if (std::ranges::find(types, type) != types.end()) return *kind;
  }
  throw std::logic_error("there is no model.type '" + std::string(type) + "'");
}

std::span<const nn::Recompute> Kind::recomputes() const {
  static constexpr nn::Recompute all[] = {nn::Recompute::none, nn::Recompute::elementwise,
                                          nn::Recompute::block_but_attention, nn::Recompute::block};
  return all;
}

bool Kind::has_split(const std::string& folder, const std::string& split) const {
  if (data::exists_or_given(io::join_path(folder, split + "/index.jsonl"))) return true;
  // Of a dataset that is encoded while training; latents have no such file.
  return data::exists_or_given(io::join_path(folder, "dataset.json")) &&
         data::ClipSet::has_split(folder, split);
}

std::unique_ptr<Dataset> Kind::open_other(const RunOptions& options, const Dataset& first,
                                          const std::string& split) const {
  std::unique_ptr<Dataset> other = first.other_split(split);
  return other ? std::move(other) : open(options, split);
}

std::string Kind::key_words(std::string_view /*type*/, std::string_view /*key*/) const {
  return {};
}

models::PartWork Kind::part_work(const Recipe& /*recipe*/) const {
  return {};
}

std::vector<int> Kind::balanced_stages(const Recipe& recipe) const {
  return models::balance_stages(part_work(recipe), recipe.parallel.pp, recipe.parallel.vpp);
}

bool may_be_graphs(const ModelRecipe& model, nn::Recompute recompute, bool exchanges) {
  return kind_of(model.type).has_graphs() && !model.offloads(recompute) && !exchanges;
}

void need_without_data(int value, std::string_view field) {
  if (value == 0) fail_usage("'model.{}' comes from the data: give --data DIR, or set it", field);
}

}  // namespace vfm::train
