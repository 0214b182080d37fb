// SPDX-License-Identifier: Apache-2.0
#include "train/data/dataset.h"

#include <algorithm>
#include <numeric>

#include "base/counted.h"
#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "train/kind.h"
#include "train/recipe/recipe_file.h"
#include "train/step/parallel.h"

namespace vfm::train {

std::int64_t token_count(const data::Entry& entry, const ModelRecipe& model) {
  return data::token_count(entry, kind_of(model.type).patch(model));
}

void warn_of_data(const Dataset& data, const std::vector<std::string>& said) {
  for (const std::string& sentence : data.remarks())
    if (std::ranges::find(said, sentence) == said.end()) log_warning("{}", sentence);
}

void Dataset::fit(Recipe& recipe) const {
  fit_model(recipe);
  std::int64_t most = 0;
  for (const data::Form& form : index().forms())
    most = std::max(most, token_count(index().sizes(form.first), recipe.model));
  check_forms(index(), [&](const data::Entry& sample) {
    check_share(recipe, sample);
    const std::int64_t tokens = token_count(sample, recipe.model);
    if (tokens == most && tokens > recipe.data.tokens)
      fail_usage("sample '{}' has {}, more than a pack holds: {}; data.tokens={} takes all samples",
                 sample.key, counted(tokens, "token"), describe_setting(recipe, "data.tokens"),
                 most);
  });
}

void check_forms(const data::SampleIndex& index,
                 const std::function<void(const data::Entry&)>& check) {
  for (const data::Form& form : index.forms()) {
    data::Entry sample = index.sizes(form.first);
    try {
      check(sample);
    } catch (const Error&) {
      sample.key = index.name(form.first);
      check(sample);
      throw;
    }
  }
}

std::unique_ptr<data::EpochOrder> Dataset::order(std::uint64_t seed, data::Packing packing) const {
  return data::order_of_set(size(), seed, packing);
}

std::size_t Dataset::source_of(std::size_t i) const {
  const std::span<const DataSource> all = sources();
  const auto next = std::ranges::upper_bound(all, i, {}, &DataSource::first);
  return next == all.begin() ? 0 : static_cast<std::size_t>(next - all.begin()) - 1;
}

data::LengthsOf Dataset::lengths(const ModelRecipe& model) const {
  std::vector<std::int64_t> of_form;
  for (const data::Form& form : index().forms())
    of_form.push_back(token_count(sizes(form.first), model));
  return [of_form, &index = index()](std::span<const std::uint64_t> samples) {
    index.expect(samples);
    std::vector<std::int64_t> found;
    found.reserve(samples.size());
    for (const std::uint64_t i : samples)
      found.push_back(of_form[index.form_of(i)]);
    return found;
  };
}

std::vector<std::int64_t> Dataset::tokens(const ModelRecipe& model, std::size_t most) const {
  std::vector<std::uint64_t> first(std::min(most, size()));
  std::iota(first.begin(), first.end(), std::uint64_t{0});
  return lengths(model)(first);
}

Json Dataset::facts() const {
  return Json::object();
}

std::int64_t Dataset::about_bytes(std::size_t i) const {
  const data::Entry sample = sizes(i);
  return std::int64_t{sample.frames} * sample.height * sample.width;
}

void Dataset::fetch(std::span<data::SampleBytes> /*parts*/) const {
  fail("these samples are not in an object store");
}

CleanSample Dataset::read_fetched(std::size_t i, const std::string& bytes,
                                  std::optional<SeenAt> /*seen*/) const {
  return put_together(i, bytes);
}

std::string Dataset::read_piece(std::size_t /*i*/, std::int64_t /*begin*/,
                                std::int64_t /*end*/) const {
  fail("these data are not read in pieces");
}

CleanSample Dataset::put_together(std::size_t /*i*/, std::string_view /*bytes*/) const {
  fail("these data are not read in pieces");
}

}  // namespace vfm::train
