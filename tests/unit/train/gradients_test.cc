// Gradients that are added over ranks while backward still runs.
// SPDX-License-Identifier: Apache-2.0
#include "train/step/gradients.h"

#include <omp.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "base/half.h"
#include "dist/threads.h"
#include "objectives_fixture.h"

using namespace vfm;
using namespace vfm::train;
using dist::Axes;

namespace {

constexpr std::int64_t kFew = 300;  // elements of a message: many of them, some matrices alone

/// What ranks do, and how.
struct Way {
  const char *text = kNetworks, *more = "{}";
  int adapters = 0;
  int tp = 1, cp = 1;
  int ranks = 2;
  DType travel = DType::f32;
  nn::Recompute recompute = nn::Recompute::none;
};

/// Of every rank, its own gradients and then the sums; and which of its parameters are parts.
struct Reduced {
  std::vector<Gradients> own, sums;
  std::vector<bool> parts;
  std::int64_t early = 0;  ///< messages of the first rank that started in the midst of backward
};

/// Two steps, of one batch and of two. Where there are three groups of ranks with samples of their
/// own, the last has none.
Reduced reduce(const Way& way) {
  Reduced result;
  result.own.resize(static_cast<std::size_t>(way.ranks));
  result.sums.resize(result.own.size());
  dist::thread_worlds(way.ranks, [&](dist::World& world) {
    omp_set_num_threads(1);
    const auto rank = static_cast<std::size_t>(world.rank());
    dist::Layout sizes;
    sizes.tp = way.tp, sizes.cp = way.cp;
    const dist::Mesh mesh(world, sizes, std::array{Axes::tp | Axes::cp | Axes::dp});
    nn::NetworkLayout layout;
    if (way.tp > 1) layout.tp = &mesh.group(Axes::tp);
    if (way.cp > 1) layout.cp = &mesh.group(Axes::cp);
    Recipe recipe = small_recipe(way.text, way.more, way.adapters);
    const std::vector<CleanSample> samples = fitted_samples(recipe);
    const auto objective =
        kind_of(recipe.model.type).make_objective(recipe, way.recompute, Device::cpu, layout);
    draw_parameters(*objective);
    const nn::ParameterList& parameters = objective->parameters();
    GradientReducer reducer(mesh, parameters, way.travel, kFew);
    const int replica = mesh.place(Axes::dp);
    const auto pass = [&](int number, bool first, const ops::Tape::Listener& final) {
      const auto sample = static_cast<std::size_t>(number + replica) % 2;
      objective->pass(*objective->build(0, 2, {{samples[sample], sample}}), first, final);
    };
    const auto step = [&](int passes, const auto& listener) {
      if (replica == 2) return nn::zero_gradients(parameters);
      for (int i = 0; i < passes; ++i)
        pass(i, i == 0, i + 1 == passes ? listener() : ops::Tape::Listener());
    };
    const auto none = [] { return ops::Tape::Listener(); };
    for (const int passes : {1, 2}) {
      step(passes, none);
      const Gradients own = gradients_of(*objective);
      result.own[rank].insert(result.own[rank].end(), own.begin(), own.end());
      for (nn::Parameter* parameter : parameters)
        std::ranges::fill(parameter->grad.floats(), std::numeric_limits<float>::quiet_NaN());
      const auto started = [&] {
        std::int64_t calls = 0;
        for (const Axes axes : {Axes::cp | Axes::dp, Axes::tp | Axes::cp | Axes::dp})
          calls += world.traffic().of(dist::axes_name(axes), dist::Operation::all_reduce).calls;
        return calls;
      };
      const std::int64_t before = started();
      step(passes, [&]() -> ops::Tape::Listener {
        return [&, hear = reducer.listener()](const Tensor& gradient) {
          hear(gradient);
          // Nothing has reached the first parameter yet, which is the last that backward comes to.
          if (rank == 0 && std::isnan(parameters.front()->grad.floats()[0]))
            result.early = started() - before;
        };
      });
      reducer.finish();
      const Gradients sums = gradients_of(*objective);
      result.sums[rank].insert(result.sums[rank].end(), sums.begin(), sums.end());
    }
    if (rank == 0)
      for (int twice = 0; twice < 2; ++twice)
        for (const nn::Parameter* parameter : parameters)
          result.parts.push_back(!parameter->whole());
  });
  return result;
}

float travelled(float value, DType travel) {
  return travel == DType::f32 ? value : bfloat16_to_float(float_to_bfloat16(value));
}

/// One after the other, in the order of ranks.
void check(const Way& way) {
  INFO(way.text << way.more << " adapters " << way.adapters << " tp=" << way.tp << " cp=" << way.cp
                << " ranks " << way.ranks << " " << nn::recompute_name(way.recompute));
  const Reduced result = reduce(way);
  std::vector<bool> wrong;
  for (std::size_t rank = 0; rank < result.own.size(); ++rank)
    for (std::size_t i = 0; i < result.parts.size(); ++i) {
      std::vector<float> sum;
      for (std::size_t other = 0; other < result.own.size(); ++other) {
        const auto tp = static_cast<std::size_t>(way.tp);
        if (result.parts[i] && other % tp != rank % tp) continue;
        const std::vector<float>& own = result.own[other][i];
        const bool first = sum.empty();
        sum.resize(own.size());
        for (std::size_t k = 0; k < own.size(); ++k)
          sum[k] = first ? travelled(own[k], way.travel) : sum[k] + travelled(own[k], way.travel);
      }
      for (float& value : sum)
        value = travelled(value, way.travel);
      wrong.push_back(sum != result.sums[rank][i]);
    }
  CHECK(std::ranges::count(wrong, true) == 0);
  CHECK((result.early > 0) == (std::string(way.text) != kTokenizers));
}

}  // namespace

TEST_CASE("gradients that travel while backward runs are added to the same bits") {
  for (const Way& way : std::vector<Way>{{},
                                         {.ranks = 3},
                                         {.more = "model.compute: bf16"},
                                         {.adapters = 2},
                                         {.more = "model.type: stdit"},
                                         {.more = "model: {type: moviegen}"},
                                         {.text = kCodes},
                                         {.text = kTokenizers}}) {
    const Recipe recipe = small_recipe(way.text, way.more, 0);
    for (const nn::Recompute recompute : kind_of(recipe.model.type).recomputes()) {
      Way each = way;
      each.recompute = recompute;
      check(each);
    }
  }
}

TEST_CASE("gradients of ranks that share samples are added while backward runs") {
  check({.tp = 2, .ranks = 4});
  check({.cp = 2, .ranks = 4});
  check({.cp = 2, .recompute = nn::Recompute::block});
  check({.tp = 2, .cp = 2, .ranks = 4, .travel = DType::bf16});
  check({.more = "model: {type: moviegen}", .tp = 2, .ranks = 6});
  check({.adapters = 2, .ranks = 3, .travel = DType::bf16});
}
