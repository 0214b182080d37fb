// SPDX-License-Identifier: Apache-2.0
#include "train/dataset.h"

#include "base/error.h"
#include "base/hash.h"
#include "train/kind.h"
#include "train/parallel.h"
#include "train/recipe_file.h"

namespace vfm::train {

std::int64_t token_count(const data::Entry& entry, const ModelRecipe& model) {
  return data::token_count(entry, kind_of(model.type).patch(model));
}

void Dataset::fit(Recipe& recipe) const {
  fit_model(recipe);
  for (const data::Entry& sample : entries()) {
    check_share(recipe, sample);
    if (token_count(sample, recipe.model) > recipe.data.tokens)
      fail_usage("sample '{}' has {} tokens, more than a pack holds: {}, must be at least that",
                 sample.key, token_count(sample, recipe.model),
                 describe_setting(recipe, "data.tokens"));
  }
}

std::vector<std::int64_t> Dataset::tokens(const ModelRecipe& model) const {
  std::vector<std::int64_t> lengths;
  for (const data::Entry& sample : entries())
    lengths.push_back(token_count(sample, model));
  return lengths;
}

std::int64_t Dataset::about_bytes(std::size_t i) const {
  const data::Entry& sample = entry(i);
  return std::int64_t{sample.frames} * sample.height * sample.width;
}

std::string Dataset::read_piece(std::size_t /*i*/, std::int64_t /*begin*/,
                                std::int64_t /*end*/) const {
  fail("these data are not read in pieces");
}

CleanSample Dataset::put_together(std::size_t /*i*/, std::string_view /*bytes*/) const {
  fail("these data are not read in pieces");
}

std::string Dataset::fingerprint() const {
  Hasher hasher;
  hasher.update(dump_json(info()));
  for (const data::Entry& sample : entries())
    hasher.update(fmt::format("\n{} {} {} {} {} {}", sample.key, sample.frames, sample.height,
                              sample.width, sample.fps, sample.text_tokens));
  return hasher.hex128();
}

}  // namespace vfm::train
