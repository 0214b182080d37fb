// SPDX-License-Identifier: Apache-2.0
#include "train/check_parallel.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <span>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/units.h"
#include "dist/together.h"
#include "nn/weight.h"
#include "train/beginning.h"
#include "train/compare_gradients.h"
#include "train/memory.h"
#include "train/parallel.h"
#include "train/tp_chunks.h"
#include "train/trainer.h"
#include "train/without_gradient.h"

namespace vfm::train {
namespace {

constexpr double kLossLimit = 1e-5, kGradientLimit = 1e-4;  // of f32; the first of the norm, too
constexpr double kRoundedLimit = 2e-2, kRoundings = 2;      // of bf16
constexpr double kMostLimit = 0.5;                          // a gradient that is lost differs by 1
constexpr double kClip = 1e-6;                              // far below every norm
constexpr std::int64_t kLookedAtOnce = std::int64_t{4} << 20;  // elements looked at together

/// What an update changed, f32 on the host, by parameter: in its value and in its average.
struct Changes {
  std::vector<Tensor> values, average;
};

Tensor on_host(const Tensor& values) {
  return values.device() == Device::cpu ? values.clone() : values.to(Device::cpu);
}

/// The step, with an update.
StepResult step(Trainer& trainer, Changes& changes) {
  const nn::ParameterList& states = trainer.optimizer().parameters();
  for (const nn::Parameter* state : states)
    changes.values.push_back(on_host(state->read()));
  const StepResult result = trainer.train_step();
  for (std::size_t i = 0; i < states.size(); ++i) {
    const Tensor before = changes.values[i], after = on_host(states[i]->read());
    const Tensor average = on_host(trainer.optimizer().ema()[i]);
    for (std::size_t k = 0; k < before.floats().size(); ++k) {
      average.floats()[k] -= before.floats()[k];
      before.floats()[k] = after.floats()[k] - before.floats()[k];
    }
    changes.average.push_back(average);
  }
  return result;
}

/// What one rank made of the step.
struct Alone {
  double memory = 0;  // that it needed
  double loss = 0, norm = 0;
  std::map<std::string, Tensor> gradients;  // f32, on the host
  Changes changes;
  double own_loss = 0, own_norm = 0;  // differences between bf16 and f32; of f32 none
  double own_update = 0, own_average = 0;
  std::map<std::string, double> own;
  std::map<std::string, std::string> without;  // why a parameter has no gradient
};

bool all_zeros(const nn::Parameter& parameter) {
  for (std::int64_t begin = 0; begin < parameter.elements(); begin += kLookedAtOnce) {
    const Tensor piece =
        parameter.read(begin, std::min(begin + kLookedAtOnce, parameter.elements()))
            .to(Device::cpu);
    if (std::ranges::any_of(piece.floats(), [](float v) { return v != 0; })) return false;
  }
  return true;
}

/// The weights that the step begins with. A collective of `world`.
void begin(const RunOptions& options, const Trainer& trainer, dist::World& world) {
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

/// One rank's passes of the step, of as many packs together as a rank of the layout has.
Recipe recipe_alone(const Recipe& recipe, int ranks) {
  Recipe alone = recipe;
  alone.parallel = {};
  alone.data.micro_packs = packs_of_rank(recipe, ranks).together;
  return alone;
}

Alone pass_alone(const RunOptions& options, const Recipe& recipe, const Dataset& data) {
  const std::unique_ptr<dist::World> self = dist::self_world();
  Trainer trainer(recipe, data, *self, options.device);
  begin(options, trainer, *self);
  Alone alone;
  const StepResult result = step(trainer, alone.changes);
  alone.loss = result.loss.mean();
  alone.norm = result.gradient_norm;
  const std::vector<data::Entry> samples = first_samples(recipe, data);
  for (const nn::Parameter* p : trainer.objective().parameters()) {
    alone.gradients[p->name] = p->grad.to(Device::cpu);
    alone.without[p->name] = why_no_gradient(samples, recipe, p->name);
  }
  return alone;
}

double relative(double difference, double to) {
  return difference == 0 ? 0 : difference / std::abs(to);
}

/// On rank 0. Throws Error{usage} if it has no memory for it.
Alone step_alone(const RunOptions& options, const Recipe& recipe, const Dataset& data) {
  const double usable = usable_memory(options.device, 1) - data.device_bytes();  // others wait
  const std::vector<data::Entry> pack = fullest_pack(recipe, data);
  const bool rounded = recipe.compute() == DType::bf16;
  Recipe exactly = recipe;
  exactly.model.compute = "f32";
  std::vector<const Recipe*> passes = {&recipe};
  if (rounded) passes.push_back(&exactly);
  double memory = 0;
  for (const Recipe* one : passes) {
    const models::Recompute recompute = choose_recompute(*one, 1, options.device, usable, pack);
    const MemoryNeed need = memory_need(*one, 1, recompute, options.device, pack);
    // The host keeps the gradients of what came before, and what the update changed.
    memory =
        std::max(memory, need.total() + (options.device == Device::cpu ? 3 * need.gradients : 0));
  }
  if (memory > usable)
    fail_usage(
        "rank 0 first makes the step alone, with the whole model, which needs about {} of memory, "
        "and {} are there: check the layout with fewer layers ('model.num_layers'), or on a "
        "machine with more memory",
        format_bytes(memory), format_bytes(usable));
  log_info("rank 0 makes the step alone, with the whole model: about {} of {}",
           format_bytes(memory), format_bytes(usable));
  std::optional<Alone> exact;
  if (rounded) exact = pass_alone(options, exactly, data);
  Alone alone = pass_alone(options, recipe, data);
  alone.memory = memory;
  if (!exact) return alone;
  alone.own_loss = relative(std::abs(alone.loss - exact->loss), exact->loss);
  alone.own_norm = relative(std::abs(alone.norm - exact->norm), exact->norm);
  const auto differ = [](const std::vector<Tensor>& made, const std::vector<Tensor>& expected) {
    GradientSquares squares;
    for (std::size_t i = 0; i < made.size(); ++i)
      squares.add(made[i].floats(), expected[i].floats());
    return relative(std::sqrt(squares.difference), std::sqrt(squares.expected));
  };
  alone.own_update = differ(alone.changes.values, exact->changes.values);
  alone.own_average = differ(alone.changes.average, exact->changes.average);
  for (const auto& [name, gradient] : alone.gradients) {
    GradientSquares squares;
    squares.add(gradient.floats(), exact->gradients.at(name).floats());
    alone.own[name] = relative(std::sqrt(squares.difference), std::sqrt(squares.expected));
  }
  return alone;
}

void judge(ComparedValue& value) {
  if (!std::isfinite(value.together) || std::isnan(value.difference))
    value.fault = "not finite";
  else if (!value.without.empty())
    return;  // what there is, is rounding
  else if (value.alone == 0 && value.together == 0)
    value.fault = "zero both times, which proves nothing";
  else if (value.difference > value.limit)
    value.fault = value.most.empty() ? "differs" : fmt::format("differs, most in '{}'", value.most);
}

bool comes_first(const ComparedValue& a, const ComparedValue& b) {
  if (a.good() != b.good()) return b.good();
  return a.difference * b.limit > b.difference * a.limit;
}

/// What an update changed in all parameters, compared. `made` is this rank's. A collective of those
/// that hold them together.
ComparedValue compare_changes(const char* name, const GradientComparer& comparer,
                              const nn::ParameterList& parameters, const std::vector<Tensor>& made,
                              const std::vector<Tensor>* alone) {
  ComparedValue value{.name = name};
  GradientSquares all;
  double most = 0;
  std::string where;  // it differs most
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const GradientSquares one =
        comparer.compare(i, made[i], alone != nullptr ? &(*alone)[i] : nullptr);
    all.expected += one.expected;
    all.made += one.made;
    all.difference += one.difference;
    if (one.difference > most) where = parameters[i]->name;
    most = std::max(most, one.difference);
  }
  value.alone = std::sqrt(all.expected);
  value.together = std::sqrt(all.made);
  value.difference = relative(std::sqrt(all.difference), value.alone);
  value.most = where;
  return value;
}

std::string describe_stray(const char* what, const Stray& stray) {
  return fmt::format("rank {} has another {} than rank {}", stray.rank, what, stray.like);
}

/// All that is compared, on rank 0. A collective.
std::vector<ComparedValue> compare(const Trainer& trainer, const StepResult& step,
                                   const Changes& changes, const Alone* alone,
                                   const Recipe& recipe) {
  const double loss = step.loss.mean();
  const bool rounded = recipe.compute() == DType::bf16;
  const dist::Mesh& mesh = trainer.parallel().mesh();
  const nn::ParameterList& parameters = trainer.shards().states();
  const std::vector<Stray> strays =
      find_strays(mesh, parameters, [](const nn::Parameter& p) { return p.grad; });
  // The weights as each rank computes with them, where it has them.
  nn::ParameterList here;
  std::ranges::copy_if(trainer.objective().parameters(), std::back_inserter(here),
                       [](const nn::Parameter* p) { return !p->sharded; });
  const std::vector<Stray> stale =
      find_strays(mesh, here, [](const nn::Parameter& p) { return p.split() ? p.high : p.value; });
  // Of copies of the network that of rank 0 is compared.
  dist::Group& holders = holders_of(mesh, parameters);
  if (holders.ranks().front() != 0) return {};
  const GradientComparer comparer(holders, parameters);
  std::vector<ComparedValue> values;
  const double limit = recipe.parallel.reduce == "bf16" ? kRoundedLimit : kGradientLimit;
  const auto add = [&](ComparedValue value, double exact, double own) {
    value.limit = rounded ? std::max(kRoundedLimit, std::min(kRoundings * own, kMostLimit)) : exact;
    if (value.fault.empty()) judge(value);
    values.push_back(std::move(value));
  };
  if (alone != nullptr)
    add({.name = "loss",
         .alone = alone->loss,
         .together = loss,
         .difference = relative(std::abs(loss - alone->loss), alone->loss)},
        kLossLimit, alone->own_loss);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const GradientSquares squares =
        comparer.compare(i, parameters[i]->grad,
                         alone != nullptr ? &alone->gradients.at(parameters[i]->name) : nullptr);
    if (alone == nullptr) continue;
    ComparedValue value{.name = parameters[i]->name,
                        .alone = std::sqrt(squares.expected),
                        .together = std::sqrt(squares.made)};
    value.difference = relative(std::sqrt(squares.difference), value.alone);
    value.without = alone->without.at(value.name);
    if (squares.elements != element_count(parameters[i]->placement.global))
      value.fault = "the ranks have not all parts of it";
    else if (strays[i].rank >= 0)
      value.fault = describe_stray("gradient", strays[i]);
    const auto own = alone->own.find(value.name);
    add(std::move(value), limit, own == alone->own.end() ? 0 : own->second);
  }
  ComparedValue update = compare_changes("update", comparer, parameters, changes.values,
                                         alone != nullptr ? &alone->changes.values : nullptr);
  ComparedValue average = compare_changes("average", comparer, parameters, changes.average,
                                          alone != nullptr ? &alone->changes.average : nullptr);
  if (alone == nullptr) return values;
  for (std::size_t i = 0; i < here.size(); ++i)
    if (stale[i].rank >= 0 && update.fault.empty())
      update.fault =
          describe_stray("weight", stale[i]) + fmt::format(" after it: '{}'", here[i]->name);
  add({.name = "gradient norm",
       .alone = alone->norm,
       .together = step.gradient_norm,
       .difference = relative(std::abs(step.gradient_norm - alone->norm), alone->norm)},
      recipe.parallel.reduce == "bf16" ? limit : kLossLimit, alone->own_norm);
  add(std::move(update), limit, alone->own_update);
  add(std::move(average), limit, alone->own_average);
  std::ranges::stable_sort(values, comes_first);
  return values;
}

}  // namespace

Json ParallelCheck::to_json() const {
  Json rows = Json::array();
  for (const ComparedValue& value : values) {
    Json row = {{"name", value.name},       {"one_rank", value.alone},
                {"layout", value.together}, {"difference", value.difference},
                {"limit", value.limit},     {"passed", value.good()}};
    if (!value.good()) row["fault"] = value.fault;
    if (!value.without.empty()) row["without"] = value.without;
    rows.push_back(std::move(row));
  }
  return {{"kind", "parallel_check"}, {"layout", layout},
          {"compute", compute},       {"one_rank_bytes", static_cast<std::int64_t>(one_rank_bytes)},
          {"passed", passed},         {"values", std::move(rows)}};
}

std::string ParallelCheck::words() const {
  std::size_t width = 4;
  for (const ComparedValue& value : values)
    width = std::max(width, value.name.size());
  std::string text = fmt::format("{:<{}} {:>12} {:>12} {:>11} {:>9}\n", layout, width, "one rank",
                                 "layout", "difference", "limit");
  long faults = 0;
  for (const ComparedValue& value : values) {
    faults += value.good() ? 0 : 1;
    const std::string& verdict = value.good() ? value.without : value.fault;
    text += fmt::format("{:<{}} {:>12.5g} {:>12.5g} {:>11.2e} {:>9.1e}  {}\n", value.name, width,
                        value.alone, value.together, value.difference, value.limit,
                        verdict.empty() ? "ok" : verdict);
  }
  return text + fmt::format(
                    "{} of {} values differ; rank 0 made the step alone, with the whole model: "
                    "about {} of memory\n",
                    faults, values.size(), format_bytes(one_rank_bytes));
}

ParallelCheck check_parallel(const RunOptions& options, const Dataset& data, dist::World& world) {
  world.section("setup", options.recipe.train.setup_limit);
  Recipe recipe = options.recipe, one;
  recipe.ema = {};
  recipe.schedule = {.warmup = 0};
  recipe.optimizer.lr = 1;
  recipe.optimizer.eps = kClip;
  recipe.optimizer.clip = kClip;
  recipe.optimizer.weight_decay = 1e-3;
  std::optional<Alone> alone;
  on_all_ranks(world, [&] {
    check_offload(recipe, options.device);
    data.fit(recipe);
    check_layout(recipe, world.size(), world.least_local_size());
    const MemoryNeed need =
        memory_need(recipe, world.size(), models::Recompute::block, options.device, {});
    check_memory(recipe, need, memory_beside(recipe, data, options.device, world));
    if (world.rank() != 0) return;
    check_run(options, recipe);
    warn_of_data(data);
    warn_of_idle_ranks(recipe, world.size());
    warn_of_idle_stages(recipe, world.size());
    one = recipe_alone(recipe, world.size());
    alone = step_alone(options, one, data);
  });
  settle_tp_chunks(recipe, options.device, world);
  Trainer trainer(recipe, data, world, options.device);
  begin(options, trainer, world);
  ParallelCheck check;
  check.layout = dist::to_string(trainer.parallel().mesh().layout());
  check.compute = recipe.model.compute;
  if (alone) check.one_rank_bytes = alone->memory;
  world.section("step", recipe.train.step_limit);
  Changes changes;
  const StepResult result = step(trainer, changes);
  check.values = compare(trainer, result, changes, alone ? &*alone : nullptr, recipe);
  check.passed = std::ranges::all_of(check.values, &ComparedValue::good);
  world.broadcast(std::as_writable_bytes(std::span(&check.passed, 1)));
  return check;
}

}  // namespace vfm::train
