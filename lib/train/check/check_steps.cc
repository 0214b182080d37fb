// SPDX-License-Identifier: Apache-2.0
#include "train/check/check_steps.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "base/json.h"
#include "nn/weight.h"
#include "train/check/compare_gradients.h"
#include "train/step/schedule.h"
#include "train/step/validation.h"

namespace vfm::train {
namespace {

constexpr double kClip = 1e-6;   // far below every norm
constexpr double kPart = 0.1;    // of weights, that a step changes
constexpr double kDrawn = 0.02;  // nn::Init::normal
constexpr float kLastBit = 0x1p-23f;  // of an f32, relative to it
constexpr int kValidated = 8;    // samples

Tensor on_host(const Tensor& values) {
  return values.device() == Device::cpu ? values.clone() : values.to(Device::cpu);
}

std::vector<Tensor> values_of(const Trainer& trainer) {
  std::vector<Tensor> values;
  for (const nn::Parameter* state : trainer.shards().states())
    values.push_back(on_host(state->read()));
  return values;
}

std::vector<Tensor> averages_of(Trainer& trainer) {
  std::vector<Tensor> averages;
  if (trainer.optimizer().has_ema())
    for (const Tensor& average : trainer.optimizer().ema())
      averages.push_back(on_host(average));
  return averages;
}

/// `after` less `before`, in its place.
void subtract(const std::vector<Tensor>& before, std::vector<Tensor>& after) {
  for (std::size_t i = 0; i < after.size(); ++i)
    for (std::size_t k = 0; k < after[i].floats().size(); ++k)
      after[i].floats()[k] -= before[i].floats()[k];
}

/// Numbers of a normal distribution for each element of the parameter, the same on any layout.
Tensor drawn(const nn::Parameter& parameter, std::string_view what, std::uint64_t seed) {
  nn::Parameter like{.name = parameter.name + std::string(what), .placement = parameter.placement};
  like.value = Tensor(parameter.shape(), DType::f32, parameter.device());
  nn::draw(like, nn::Init::normal, seed);
  const Tensor numbers = on_host(like.value);
  for (float& number : numbers.floats())
    number = static_cast<float>(number / kDrawn);
  return numbers;
}

void draw_states(Trainer& trainer, const Recipe& recipe, std::span<const double> sizes) {
  const nn::ParameterList& states = trainer.optimizer().parameters();
  for (std::size_t i = 0; i < states.size(); ++i)
    if (states[i]->here())
      trainer.optimizer().draw_state(i, sizes[i], [&](std::string_view what) {
        return drawn(*states[i], what, recipe.train.seed);
      });
}

/// Of the average. A collective.
double validate(Trainer& trainer, const Recipe& recipe, const Dataset& data) {
  Recipe few = recipe;
  few.validation.samples = std::min(few.validation.samples, kValidated);
  trainer.swap_ema();
  Validation validation(few, data, "train");
  const Json record = validation.run(trainer.objective(), trainer.parallel());
  trainer.swap_ema();
  return record["val_loss"].get<double>();
}

/// Whether the parameter's elements are some of the matrix; and from which on.
bool is_in(const nn::Parameter& parameter, const nn::ShardedMatrix& matrix, std::int64_t& begin) {
  const Tensor& name = matrix.name();
  const auto* first = static_cast<const std::byte*>(name.raw());
  const auto* own =
      static_cast<const std::byte*>((parameter.split() ? parameter.high : parameter.value).raw());
  if (own < first || own >= first + name.bytes()) return false;
  begin = (own - first) / static_cast<std::int64_t>(dtype_size(name.dtype()));
  return true;
}

/// Hashes of the weights of these parameters as this rank computes with them, gathered ones too; 0:
/// another stage has it. `old` is the number of gathered matrices that have not what this rank
/// keeps of them. A collective.
std::vector<std::uint64_t> hash_weights(nn::BlockShards* blocks,
                                        const nn::ParameterList& parameters, double& old) {
  std::vector<std::uint64_t> hashes(parameters.size());
  for (std::size_t i = 0; i < parameters.size(); ++i)
    if (const nn::Parameter& p = *parameters[i]; p.here() && !p.sharded)
      hashes[i] = hash_of(p.split() ? p.high : p.value);
  if (blocks == nullptr) return hashes;
  blocks->look_at_all([&](const nn::ShardedMatrix& matrix, const Tensor& all, bool current) {
    old += current ? 0 : 1;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const nn::Parameter& p = *parameters[i];
      std::int64_t begin = 0;
      if (p.here() && p.sharded && is_in(p, matrix, begin))
        hashes[i] = hash_of(all.reshape({all.elements()}).rows(begin, begin + p.elements()));
    }
  });
  return hashes;
}

std::string words_of(const std::vector<Stray>& strays, const nn::ParameterList& parameters) {
  for (std::size_t i = 0; i < strays.size(); ++i)
    if (strays[i].rank >= 0)
      return fmt::format("rank {} has another weight than rank {}: '{}'", strays[i].rank,
                         strays[i].like, parameters[i]->name);
  return "";
}

}  // namespace

Recipe recipe_of_first(const Recipe& own) {
  Recipe recipe = own;
  recipe.ema.every = std::min(own.ema.every, kLaterSteps);
  recipe.schedule = {.warmup = 0};
  recipe.optimizer.lr = 1;
  recipe.optimizer.eps = kClip;
  recipe.optimizer.clip = kClip;
  recipe.optimizer.weight_decay = 1e-3;
  recipe.optimizer.max_skips = kLaterSteps + 1;
  recipe.train.steps = std::max<std::int64_t>(own.train.steps, kLaterSteps + 1);
  return recipe;
}

StepResult first_step(Trainer& trainer, Changes& changes) {
  const std::vector<Tensor> before = values_of(trainer);
  const StepResult result = trainer.train_step();
  changes = {values_of(trainer), averages_of(trainer)};
  subtract(before, changes.values);
  subtract(before, changes.average);
  return result;
}

void change_last_bits(const Trainer& trainer, std::uint64_t seed) {
  for (const nn::Parameter* state : trainer.shards().states()) {
    const Tensor values = on_host(state->read());
    const Tensor numbers = drawn(*state, ".last_bits", seed);
    for (std::size_t i = 0; i < values.floats().size(); ++i)
      values.floats()[i] *= 1 + kLastBit * numbers.floats()[i];
    state->write(values);
  }
  trainer.shards().gather();
}

LaterStart start_of_later(const Trainer& trainer,
                          const std::map<std::string, std::string>& without) {
  LaterStart start;
  double gradients = 0, weights = 0, elements = 0;
  const auto squares_of = [](const Tensor& values) {
    double sum = 0;
    for (const float v : on_host(values).floats())
      sum += double{v} * v;
    return sum;
  };
  for (const nn::Parameter* state : trainer.shards().states()) {
    const double squares = squares_of(state->grad), count = static_cast<double>(state->elements());
    start.sizes.push_back(std::sqrt(squares / std::max(1.0, count)));
    gradients += squares, weights += squares_of(state->read()), elements += count;
  }
  start.rate = kPart * std::sqrt(weights / elements);
  const double mean = std::sqrt(gradients / elements);
  const nn::ParameterList& states = trainer.shards().states();
  for (std::size_t i = 0; i < states.size(); ++i) {
    double& size = start.sizes[i];
    const bool none = !without.at(states[i]->name).empty() || !(size > 0);
    if (none || !std::isfinite(size)) size = mean > 0 && std::isfinite(mean) ? mean : 1;
  }
  return start;
}

LaterSteps later_steps(Trainer& trainer, Recipe& recipe, const Recipe& own, const Dataset& data,
                       const LaterStart& start, const std::function<void(Trainer&)>& after) {
  recipe.schedule = own.schedule;
  recipe.optimizer.eps = own.optimizer.eps;
  recipe.optimizer.weight_decay = own.optimizer.weight_decay;
  recipe.optimizer.clip = 0;
  recipe.optimizer.lr = 1;
  const double part = learning_rate(recipe.optimizer, recipe.schedule, 1, recipe.train.steps);
  recipe.optimizer.lr = part > 0 ? start.rate / part : start.rate;
  trainer.optimizer().follow(recipe.optimizer);
  draw_states(trainer, recipe, start.sizes);
  LaterSteps steps;
  const Changes before = {values_of(trainer), averages_of(trainer)};
  for (int i = 0; i < kLaterSteps; ++i) {
    const StepResult result = trainer.train_step();
    steps.losses.push_back(result.loss.mean());
    steps.norms.push_back(result.gradient_norm);
    if (after) after(trainer);
  }
  steps.changes = {values_of(trainer), averages_of(trainer)};
  subtract(before.values, steps.changes.values);
  subtract(before.average, steps.changes.average);
  steps.validation = validate(trainer, recipe, data);
  return steps;
}

std::string stale_weights(const Trainer& trainer) {
  const dist::Mesh& mesh = trainer.parallel().mesh();
  const nn::ParameterList& parameters = trainer.objective().parameters();
  double old = 0;
  const std::vector<std::uint64_t> hashes =
      hash_weights(trainer.parallel().blocks(), parameters, old);
  mesh.world().all_reduce_sum(std::span(&old, 1));
  const std::string words = words_of(find_strays(mesh, parameters, hashes), parameters);
  return words.empty() && old > 0 ? "a gathered matrix is from before the update" : words;
}

}  // namespace vfm::train
