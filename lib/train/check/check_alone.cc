// SPDX-License-Identifier: Apache-2.0
#include "train/check/check_alone.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <span>

#include "base/error.h"
#include "base/log.h"
#include "base/units.h"
#include "nn/weight.h"
#include "train/check/compare_gradients.h"
#include "train/check/without_gradient.h"
#include "train/cost/memory.h"
#include "train/state/beginning.h"

namespace vfm::train {
namespace {

constexpr double kKept = 7;                                    // values for each element
constexpr std::int64_t kLookedAtOnce = std::int64_t{4} << 20;  // elements looked at together

bool all_zeros(const nn::Parameter& parameter) {
  for (std::int64_t begin = 0; begin < parameter.elements(); begin += kLookedAtOnce) {
    const Tensor piece =
        parameter.read(begin, std::min(begin + kLookedAtOnce, parameter.elements()))
            .to(Device::cpu);
    if (std::ranges::any_of(piece.floats(), [](float v) { return v != 0; })) return false;
  }
  return true;
}

/// One rank's passes of the step, of as many packs together as a rank of the layout has.
Recipe recipe_alone(const Recipe& recipe, int ranks) {
  Recipe alone = recipe;
  alone.parallel = {};
  alone.data.micro_packs = packs_of_rank(recipe, ranks).together;
  return alone;
}

/// `start`: of its later steps, where it is that of another pass.
Alone pass_alone(const RunOptions& options, const Recipe& recipe, const Dataset& data,
                 const LaterStart* start) {
  const std::unique_ptr<dist::World> self = dist::self_world();
  Recipe own = recipe_of_first(recipe);
  Trainer trainer(own, data, *self, options.device);
  begin_check(options, trainer, *self);
  Alone alone;
  const StepResult result = first_step(trainer, alone.changes);
  alone.loss = result.loss.mean();
  alone.norm = result.gradient_norm;
  const std::vector<data::Entry> samples = first_samples(recipe, data);
  const nn::ParameterList& parameters = trainer.objective().parameters();
  for (const nn::Parameter* p : parameters) {
    alone.gradients[p->name] = p->grad.to(Device::cpu).clone();
    alone.without[p->name] = why_no_gradient(samples, recipe, p->name);
  }
  alone.start = start != nullptr ? *start : start_of_later(trainer, alone.without);
  alone.later = later_steps(trainer, own, recipe, data, alone.start, {});
  return alone;
}

/// Whole tensors: the difference of all, or the greatest of one of them.
double difference_of(const std::vector<Tensor>& made, const std::vector<Tensor>& expected,
                     bool each) {
  GradientSquares all;
  double most = 0;
  for (std::size_t i = 0; i < made.size(); ++i) {
    GradientSquares one;
    one.add(made[i].floats(), expected[i].floats());
    most = std::max(most, relative(std::sqrt(one.difference), std::sqrt(one.expected)));
    all += one;
  }
  return each ? most : relative(std::sqrt(all.difference), std::sqrt(all.expected));
}

/// What bf16 alone changes; in a gradient relative to that in bf16, to which that of all ranks is
/// compared: it may be far smaller or larger than in f32 where rounding decides it.
std::map<std::string, double> own_differences(const Alone& rounded, const Alone& exact) {
  std::map<std::string, double> own;
  const auto compare = [&](const std::string& name, double made, double expected) {
    own[name] = relative(std::abs(made - expected), expected);
  };
  compare(kLoss, rounded.loss, exact.loss);
  compare(kNorm, rounded.norm, exact.norm);
  for (const auto& [name, gradient] : rounded.gradients)
    own[name] = difference_of({exact.gradients.at(name)}, {gradient}, false);
  own[kUpdate] = difference_of(rounded.changes.values, exact.changes.values, false);
  own[kAverage] = difference_of(rounded.changes.average, exact.changes.average, false);
  const LaterSteps &a = rounded.later, &b = exact.later;
  for (std::size_t i = 0; i < a.losses.size(); ++i) {
    compare(of_step(kLoss, i), a.losses[i], b.losses[i]);
    compare(of_step(kNorm, i), a.norms[i], b.norms[i]);
  }
  own[kLaterUpdate] = difference_of(a.changes.values, b.changes.values, true);
  own[kLaterAverage] = difference_of(a.changes.average, b.changes.average, true);
  compare(kValidation, a.validation, b.validation);
  return own;
}

/// What rounding in f32 changes in each gradient: as much as a change of the weights' last bits
/// does.
std::map<std::string, double> rounding_differences(const RunOptions& options, const Recipe& recipe,
                                                   const Dataset& data, const Alone& alone) {
  const std::unique_ptr<dist::World> self = dist::self_world();
  const Recipe own = recipe_of_first(recipe);
  Trainer trainer(own, data, *self, options.device);
  begin_check(options, trainer, *self);
  change_last_bits(trainer, recipe.train.seed);
  trainer.train_step();
  std::map<std::string, double> differences;
  for (const nn::Parameter* p : trainer.objective().parameters())
    differences[p->name] =
        difference_of({p->grad.to(Device::cpu)}, {alone.gradients.at(p->name)}, false);
  return differences;
}

}  // namespace

std::string of_step(const char* what, std::size_t i) {
  return fmt::format("{} of step {}", what, i + 2);
}

double relative(double difference, double to) {
  return difference == 0 ? 0 : difference / std::abs(to);
}

void begin_check(const RunOptions& options, const Trainer& trainer, dist::World& world) {
  const nn::ParameterList& trained = trainer.shards().states();
  const nn::ParameterList frozen = nn::states_of(trainer.objective().frozen());
  const std::uint64_t seed = options.recipe.train.seed;
  if (!options.init.empty())
    load_initial(world, options, frozen.empty() ? trained : frozen, trained);
  else
    for (const nn::Parameter* p : frozen)
      nn::draw(*p, p->placement.global.size() == 1 ? nn::Init::one : nn::Init::normal, seed);
  std::vector<double> parts;  // of each parameter, those that are not zero
  for (const nn::ParameterList* list : {&trained, &frozen})
    for (const nn::Parameter* p : *list)
      parts.push_back(all_zeros(*p) ? 0 : 1);
  world.all_reduce_sum(std::span(parts));
  auto next = parts.begin();
  for (const nn::ParameterList* list : {&trained, &frozen})
    for (const nn::Parameter* p : *list)
      if (*next++ == 0) nn::draw(*p, nn::Init::normal, seed);
  trainer.shards().gather();
}

Alone step_alone(const RunOptions& options, const Recipe& run, int ranks, const Dataset& data) {
  const Recipe recipe = recipe_alone(run, ranks);
  const double usable = usable_memory(options.device, 1) -
                        reading_bytes(recipe, data, options.device);  // others wait
  const std::vector<data::Entry> pack = fullest_pack(recipe, data);
  const bool rounded = recipe.compute() == DType::bf16;
  Recipe exactly = recipe;
  exactly.model.compute = "f32";
  std::vector<const Recipe*> passes = {&recipe};
  if (rounded) passes.push_back(&exactly);
  double memory = 0;
  for (const Recipe* one : passes) {
    const nn::Recompute recompute = choose_recompute(*one, 1, options.device, usable, pack);
    const MemoryNeed need = memory_need(*one, 1, recompute, options.device, pack);
    // The host keeps gradients, and what updates change, of what came before and of this.
    memory = std::max(memory,
                      need.total() + (options.device == Device::cpu ? kKept * need.gradients : 0));
  }
  if (memory > usable)
    fail_usage(
        "rank 0 first makes the step alone, with the whole model, which needs about {} of memory; "
        "there are {}: check the layout with fewer layers ('model.num_layers'), or on a machine "
        "with more memory",
        format_bytes(memory), format_bytes(usable));
  log_info("rank 0 makes the step alone, with the whole model: about {} of {}",
           format_bytes(memory), format_bytes(usable));
  std::optional<Alone> exact;
  if (rounded) exact = pass_alone(options, exactly, data, nullptr);
  Alone alone = pass_alone(options, recipe, data, exact ? &exact->start : nullptr);
  alone.memory = memory;
  alone.own =
      exact ? own_differences(alone, *exact) : rounding_differences(options, recipe, data, alone);
  return alone;
}

}  // namespace vfm::train
