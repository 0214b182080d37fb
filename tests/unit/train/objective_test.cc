// The gradients that the batches of a step leave, whatever is trained.
// SPDX-License-Identifier: Apache-2.0
#include "train/step/objective.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <limits>

#include "objectives_fixture.h"

using namespace vfm;
using namespace vfm::train;

TEST_CASE("the gradients of a step's first batch take the place of what is there") {
  const auto [text, more, rank] = GENERATE(table<const char*, const char*, int>({
      {kNetworks, "{}", 0},
      {kNetworks, "model.compute: bf16", 0},
      {kNetworks, "{}", 2},
      {kNetworks, "model.type: stdit", 0},
      {kNetworks, "model: {type: moviegen, num_key_value_heads: 1}", 0},
      {kCodes, "{}", 0},
      {kTokenizers, "{}", 0},
      {kTokenizers, "model.levels: [8, 5, 3]", 0},
  }));
  Recipe recipe = small_recipe(text, more, rank);
  const std::vector<CleanSample> samples = fitted_samples(recipe);
  for (const nn::Recompute recompute : kind_of(recipe.model.type).recomputes()) {
    INFO(text << more << " adapters " << rank << " " << nn::recompute_name(recompute));
    const auto objective =
        kind_of(recipe.model.type).make_objective(recipe, recompute, Device::cpu, {});
    draw_parameters(*objective);
    const auto pass = [&](std::size_t sample, bool first) {
      const auto batch = objective->build(0, 2, {{samples[sample], sample}});
      objective->pass(*batch, first);
      return gradients_of(*objective);
    };
    nn::zero_gradients(objective->parameters());
    const Gradients one = pass(0, false), both = pass(1, false);
    for (nn::Parameter* parameter : objective->parameters())
      std::ranges::fill(parameter->grad.floats(), std::numeric_limits<float>::quiet_NaN());
    CHECK(pass(0, true) == one);
    CHECK(pass(1, false) == both);
    CHECK(pass(0, true) == one);
  }
}
