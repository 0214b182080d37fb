// SPDX-License-Identifier: Apache-2.0
#include "train/check/check_parallel.h"

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
#include "train/check/check_alone.h"
#include "train/check/check_steps.h"
#include "train/check/compare_gradients.h"
#include "train/check/without_gradient.h"
#include "train/cost/memory.h"
#include "train/plan/tp_chunks.h"
#include "train/state/beginning.h"
#include "train/step/parallel.h"
#include "train/step/trainer.h"

namespace vfm::train {
namespace {

constexpr double kLossLimit = 1e-5;  // of f32; of the norm, too
/// Of the steps after the first, whose weights differ by what rounding did before.
constexpr double kLaterLossLimit = 1e-4, kLaterLimit = 1e-3;

bool comes_first(const ComparedValue& a, const ComparedValue& b) {
  if (a.good() != b.good()) return b.good();
  return a.difference * b.limit > b.difference * a.limit;
}

std::string describe_stray(const char* what, const Stray& stray) {
  return fmt::format("rank {} has another {} than rank {}", stray.rank, what, stray.like);
}

/// What is compared, on rank 0. Members are collectives of those that hold the parameters together,
/// rank 0 among them; `alone` is null elsewhere.
class Comparison {
 public:
  Comparison(const Trainer& trainer, dist::Group& holders, const Alone* alone, const Recipe& recipe)
      : parameters_(trainer.shards().states()),
        comparer_(holders, parameters_),
        alone_(alone),
        limits_{recipe.compute() == DType::bf16, recipe.parallel.reduce == DType::bf16} {}

  void number(const std::string& name, double alone, double together, double limit) {
    add({.name = name,
         .alone = alone,
         .together = together,
         .difference = relative(std::abs(together - alone), alone)},
        limit);
  }

  void gradients(const std::vector<Stray>& strays) {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      const std::string& name = parameters_[i]->name;
      const GradientSquares squares = comparer_.compare(
          i, parameters_[i]->grad, alone_ != nullptr ? &alone_->gradients.at(name) : nullptr);
      if (alone_ == nullptr) continue;
      ComparedValue value{
          .name = name, .alone = std::sqrt(squares.expected), .together = std::sqrt(squares.made)};
      value.difference = relative(std::sqrt(squares.difference), value.alone);
      value.without = alone_->without.at(name);
      if (squares.elements != element_count(parameters_[i]->placement.global))
        value.fault = "the ranks have not all parts of it";
      else if (strays[i].rank >= 0)
        value.fault = describe_stray("gradient", strays[i]);
      value.of_parameter = true;
      add(std::move(value), ValueLimits::kGradient);
    }
  }

  /// What updates changed in all parameters, or in that which differs most for its limit. `made` is
  /// this rank's.
  void changes(const char* name, const std::vector<Tensor>& made, const std::vector<Tensor>* alone,
               bool each, double limit, const std::string& stale = {}) {
    if (made.empty()) return;
    ComparedValue value{.name = name};
    GradientSquares all;
    double most = -1, limit_of_most = limit;
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      const GradientSquares one =
          comparer_.compare(i, made[i], alone != nullptr ? &(*alone)[i] : nullptr);
      all += one;
      if (alone_ == nullptr) continue;
      const std::string& parameter = parameters_[i]->name;
      const double part = std::sqrt(one.difference),
                   own = each ? limits_.limit_of_updates(limit, own_of(name), own_of(parameter))
                              : 1,
                   differs = (each ? relative(part, std::sqrt(one.expected)) : part) / own;
      if (differs > most) most = differs, limit_of_most = own, value.most = parameter;
    }
    value.alone = std::sqrt(all.expected);
    value.together = std::sqrt(all.made);
    value.difference =
        each ? most * limit_of_most : relative(std::sqrt(all.difference), value.alone);
    value.fault = stale;
    add(std::move(value), each ? limit_of_most : limit);
  }

  std::vector<ComparedValue> take() {
    std::ranges::stable_sort(values_, comes_first);
    return std::move(values_);
  }

 private:
  /// What rounding changes on one rank.
  double own_of(const std::string& name) const {
    const auto own = alone_->own.find(name);
    return own == alone_->own.end() ? 0 : own->second;
  }

  void add(ComparedValue value, double exact) {
    if (alone_ == nullptr) return;
    const double own = own_of(value.name);
    value.limit = limits_.limit(exact, own, value.name == kLoss);
    limits_.judge(value, own);
    values_.push_back(std::move(value));
  }

  const nn::ParameterList& parameters_;
  const GradientComparer comparer_;
  const Alone* const alone_;
  const ValueLimits limits_;
  std::vector<ComparedValue> values_;
};

/// Makes the steps and compares them. On rank 0 what was compared. A collective.
std::vector<ComparedValue> compare(Trainer& trainer, Recipe& recipe, const RunOptions& options,
                                   const Dataset& data, const Alone* alone,
                                   const AfterStep& after) {
  dist::World& world = trainer.parallel().world();
  const dist::Mesh& mesh = trainer.parallel().mesh();
  const nn::ParameterList& parameters = trainer.shards().states();
  Changes changes;
  const StepResult step = first_step(trainer, changes);
  const std::vector<Stray> strays =
      find_strays(mesh, parameters, [](const nn::Parameter& p) { return p.grad; });
  const std::string stale = stale_weights(trainer);
  // Of copies of the network that of rank 0 is compared.
  dist::Group& holders = holders_of(mesh, parameters);
  std::optional<Comparison> compared;
  if (holders.ranks().front() == 0) compared.emplace(trainer, holders, alone, recipe);
  if (compared) {
    compared->number(kLoss, alone ? alone->loss : 0, step.loss.mean(), kLossLimit);
    compared->gradients(strays);
    compared->number(kNorm, alone ? alone->norm : 0, step.gradient_norm, kLossLimit);
    compared->changes(kUpdate, changes.values, alone ? &alone->changes.values : nullptr, false,
                      ValueLimits::kGradient, stale);
    if (recipe.ema.every == 1)
      compared->changes(kAverage, changes.average, alone ? &alone->changes.average : nullptr, false,
                        ValueLimits::kGradient);
  }
  changes = {};
  if (after) after(trainer);
  LaterStart start = alone ? alone->start : LaterStart{0, std::vector<double>(parameters.size())};
  world.broadcast(std::as_writable_bytes(std::span(&start.rate, 1)));
  world.broadcast(std::as_writable_bytes(std::span(start.sizes)));
  const LaterSteps later = later_steps(trainer, recipe, options.recipe, data, start, after);
  const std::string later_stale = stale_weights(trainer);
  if (!compared) return {};
  for (std::size_t i = 0; i < later.losses.size(); ++i) {
    compared->number(of_step(kLoss, i), alone ? alone->later.losses[i] : 0, later.losses[i],
                     kLaterLossLimit);
    compared->number(of_step(kNorm, i), alone ? alone->later.norms[i] : 0, later.norms[i],
                     kLaterLimit);
  }
  compared->changes(kLaterUpdate, later.changes.values,
                    alone ? &alone->later.changes.values : nullptr, true, kLaterLimit, later_stale);
  compared->changes(kLaterAverage, later.changes.average,
                    alone ? &alone->later.changes.average : nullptr, true, kLaterLimit);
  compared->number(kValidation, alone ? alone->later.validation : 0, later.validation,
                   kLaterLossLimit);
  return compared->take();
}

}  // namespace

Json ParallelCheck::to_json() const {
  Json rows = Json::array();
  for (const ComparedValue& value : values) {
    Json row = {{"name", value.title()},    {"one_rank", value.alone},
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
    width = std::max(width, value.title().size());
  std::string text = fmt::format("{:<{}} {:>12} {:>12} {:>11} {:>9}\n", layout, width, "one rank",
                                 "layout", "difference", "limit");
  long faults = 0;
  for (const ComparedValue& value : values) {
    faults += value.good() ? 0 : 1;
    const std::string& verdict = value.good() ? value.without : value.fault;
    text += fmt::format("{:<{}} {:>12.5g} {:>12.5g} {:>11.2e} {:>9.1e}  {}\n", value.title(), width,
                        value.alone, value.together, value.difference, value.limit,
                        verdict.empty() ? "ok" : verdict);
  }
  return text + fmt::format(
                    "{} of {} values differ; rank 0 made the step alone, with the whole model: "
                    "about {} of memory\n",
                    faults, values.size(), format_bytes(one_rank_bytes));
}

ParallelCheck check_parallel(const RunOptions& options, const Dataset& data, dist::World& world,
                             const AfterStep& after) {
  world.section("setup", options.recipe.train.setup_limit);
  Recipe recipe = options.recipe;
  std::optional<Alone> alone;
  on_all_ranks(world, [&] {
    check_offload(recipe, options.device);
    data.fit(recipe);
    check_layout(recipe, world.size(), world.least_local_size(), &data);
    const MemoryNeed need =
        memory_need(recipe, world.size(), nn::Recompute::block, options.device, {});
    check_memory(recipe, world.size(), options.device, need,
                 memory_beside(recipe, data, options.device, world));
    if (world.rank() != 0) return;
    check_run(options, recipe);
    warn_of_data(data);
    warn_of_idle_ranks(recipe, world.size());
    warn_of_idle_stages(recipe, world.size());
    alone = step_alone(options, recipe, world.size(), data);
  });
  recipe = recipe_of_first(recipe);
  settle_tp_chunks(recipe, options.device, world);
  Trainer trainer(recipe, data, world, options.device);
  begin_check(options, trainer, world);
  ParallelCheck check;
  check.layout = dist::to_string(trainer.parallel().mesh().layout());
  check.compute = recipe.model.compute;
  if (alone) check.one_rank_bytes = alone->memory;
  world.section("step", recipe.train.step_limit);
  check.values = compare(trainer, recipe, options, data, alone ? &*alone : nullptr, after);
  check.passed = std::ranges::all_of(check.values, &ComparedValue::good);
  world.broadcast(std::as_writable_bytes(std::span(&check.passed, 1)));
  return check;
}

}  // namespace vfm::train
