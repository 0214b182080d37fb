// A step that trains two networks beside a frozen one, each with its optimizer and rhythm.
// SPDX-License-Identifier: Apache-2.0
#include <omp.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/philox.h"
#include "dist/threads.h"
#include "latents_fixture.h"
#include "nn/linear.h"
#include "ops/matmul/linear.h"
#include "tensor/meta.h"
#include "train/checkpoint/checkpoint.h"
#include "train/recipe/recipe_file.h"
#include "train/step/training_step.h"

using namespace vfm;
using namespace vfm::train;

namespace {

constexpr std::int64_t kWide = 12;
constexpr std::size_t kSamplesOfStep = 4;

struct TaughtBatch final : Batch {
  Tensor x;
  double loss = 0;
};

/// A student follows a frozen teacher in every second step, and a critic what the student makes in
/// every step.
class TaughtObjective final : public Objective {
 public:
  TaughtObjective(const nn::NetworkLayout& layout, Device device) : device_(device) {
    nn::WeightOptions options;
    options.seed = 3;
    options.device = device;
    options.state = layout.state;
    options.of_products = true;
    student_.emplace_back(std::vector<std::string>{"up", "down"}, Shape{kWide, kWide}, options);
    critic_.emplace_back(std::vector<std::string>{"judge"}, Shape{5, 2 * kWide}, options);
    options.trainable = false;
    options.state = {};
    teacher_.emplace_back(std::vector<std::string>{"known"}, Shape{2 * kWide, kWide}, options);
    for (nn::Parameter& parameter : student_.front().parameters())
      of_student_.push_back(&parameter);
    for (nn::Parameter& parameter : critic_.front().parameters())
      of_critic_.push_back(&parameter);
    of_teacher_.push_back(&teacher_.front().parameters().front());
    if (device != Device::meta) nn::draw(*of_teacher_.front(), nn::Init::xavier, 5);
    critics_.kind = "muon";
    critics_.lr = 2e-2;
    critics_.clip = 0;
  }

  const nn::ParameterList& parameters() const override { return of_student_; }
  int every() const override { return 2; }
  std::vector<OtherNetwork> others() const override {
    return {{"critic", &of_critic_, 1, critics_}};
  }
  const nn::ParameterList& frozen() const override { return of_teacher_; }
  Device device() const override { return device_; }
  Json config() const override { return Json{{"_class_name", "Taught"}}; }

  std::unique_ptr<Batch> build(std::uint32_t step, std::size_t /*of_step*/,
                               const std::vector<PlacedSample>& samples) const override {
    auto batch = std::make_unique<TaughtBatch>();
    batch->x = Tensor({static_cast<std::int64_t>(samples.size()), kWide});
    for (std::size_t i = 0; i < samples.size(); ++i)
      Random(1, Purpose::test, step, samples[i].place)
          .fill_normal(batch->x.floats().subspan(i * kWide, kWide));
    return batch;
  }
  void pass(Batch& given, bool first, const ops::Tape::Listener& final) const override {
    auto& batch = dynamic_cast<TaughtBatch&>(given);
    ops::Tape tape, silent(false);
    if (first) tape.replace_gradients();
    if (final) tape.listen(final);
    student_.front().watch(tape);
    const Tensor made = nn::Linear(student_.front()).forward(tape, batch.x);
    const Tensor known = ops::linear(silent, batch.x, ops::LinearWeight(of_teacher_[0]->value));
    tape.backward(made, less(made, known, batch.loss));
    ops::Tape judged;
    if (first) judged.replace_gradients();
    if (final) judged.listen(final);
    critic_.front().watch(judged);
    const Tensor said = nn::Linear(critic_.front()).forward(judged, made);
    judged.backward(said, less(said, Tensor::zeros(said.shape(), DType::f32, device_), batch.loss));
  }
  std::unique_ptr<Batch> blank(const std::vector<data::Entry>& samples) const override {
    auto batch = std::make_unique<TaughtBatch>();
    batch->x = Tensor({static_cast<std::int64_t>(samples.size()), kWide}, DType::f32, device_);
    return batch;
  }
  LossSums loss(const Batch& batch) const override {
    return {.image_sum = dynamic_cast<const TaughtBatch&>(batch).loss, .image_elements = 1};
  }
  std::vector<std::string> levels() const override { return {""}; }
  LossSums validate(std::size_t, const std::vector<CleanSample>&) const override { return {}; }

 private:
  static Tensor less(const Tensor& a, const Tensor& b, double& squares) {
    const Tensor difference = a.clone();
    if (a.device() == Device::meta) return difference;
    for (std::size_t i = 0; i < a.floats().size(); ++i) {
      difference.floats()[i] -= b.floats()[i];
      squares += std::pow(difference.floats()[i], 2);
    }
    return difference;
  }

  const Device device_;
  OptimizerRecipe critics_;
  std::deque<nn::Weight> student_, critic_, teacher_;
  nn::ParameterList of_student_, of_critic_, of_teacher_;
};

using Weights = std::map<std::string, std::vector<float>>;

Recipe taught_recipe(const std::string& parallel) {
  auto settings = parse_yaml(
      "optimizer: {lr: 0.02}\nema: {decay: 0.5}\nparallel: {" + parallel + "}\n", "recipe");
  return make_recipe(settings);
}

/// A step with the samples of this rank.
double run_step(TrainingStep& step, const Parallel& parallel, std::uint32_t number) {
  std::vector<std::unique_ptr<Batch>> batches;
  for (std::size_t place = 0; place < kSamplesOfStep; ++place) {
    if (place % static_cast<std::size_t>(parallel.data_ranks()) !=
        static_cast<std::size_t>(parallel.data_rank()))
      continue;
    PlacedSample sample;
    sample.place = place;
    std::vector<PlacedSample> samples;
    samples.push_back(std::move(sample));
    batches.push_back(step.objective().build(number, kSamplesOfStep, samples));
  }
  step.pass_all(batches, {}, static_cast<int>(kSamplesOfStep));
  step.sum();
  return step.update(0.02, 0.1);
}

std::vector<OtherState> others_of(TrainingStep& step) {
  return {{step.networks()[1].name, step.networks()[1].optimizer}};
}

Weights weights_of(const TrainingStep& step) {
  Weights weights;
  const nn::ParameterList& student = step.objective().parameters();
  for (const nn::ParameterList* list :
       {&student, step.objective().others().front().parameters, &step.objective().frozen()})
    for (const nn::Parameter* p : *list)
      weights[p->name].assign(p->value.floats().begin(), p->value.floats().end());
  return weights;
}

/// Steps `from` to `to` of a run that continues at `checkpoint`, if it is not "", and saves the
/// last one in `out`. Returns the weights before the first step and after each.
std::vector<Weights> run_taught(int ranks, const std::string& layout, std::uint32_t from,
                                std::uint32_t to, const std::string& checkpoint = {},
                                const std::string& out = {}) {
  std::vector<Weights> after;
  std::mutex mutex;
  dist::thread_worlds(ranks, [&](dist::World& world) {
    omp_set_num_threads(1);
    const Recipe recipe = taught_recipe(layout);
    const Parallel parallel(recipe, world);
    TrainingStep step(recipe, parallel,
                      std::make_unique<TaughtObjective>(parallel.network(), Device::cpu),
                      recipe.ema);
    if (!checkpoint.empty()) {
      read_checkpoint(world, checkpoint, step.optimizer(), Tables::same, others_of(step));
      step.optimizer().updates = from / 2;
      step.networks()[1].optimizer.updates = from;
      step.set_step(from);
    }
    step.gather();
    const auto keep = [&] {
      const std::lock_guard lock(mutex);
      if (world.rank() == 0) after.push_back(weights_of(step));
    };
    keep();
    for (std::uint32_t i = from; i < to; ++i) {
      CHECK(std::isfinite(run_step(step, parallel, i)));
      keep();
    }
    if (!out.empty())
      write_checkpoint(parallel.mesh(), out,
                       {.step = to,
                        .config = step.objective().config(),
                        .train = Json{{"step", to}},
                        .optimizer = step.optimizer(),
                        .others = others_of(step)});
  });
  return after;
}

double difference_of(const Weights& a, const Weights& b) {
  double difference = 0, all = 0;
  for (const auto& [name, values] : a)
    for (std::size_t i = 0; i < values.size(); ++i) {
      difference += std::pow(values[i] - b.at(name)[i], 2);
      all += std::pow(values[i], 2);
    }
  return std::sqrt(difference / all);
}

}  // namespace

TEST_CASE("several networks: each moves in its rhythm, and a frozen one never") {
  const std::vector<Weights> after = run_taught(1, "", 0, 4);
  for (std::size_t i = 1; i < after.size(); ++i) {
    CHECK((after[i].at("up") != after[i - 1].at("up")) == (i % 2 == 0));
    CHECK((after[i].at("down") != after[i - 1].at("down")) == (i % 2 == 0));
    CHECK(after[i].at("judge") != after[i - 1].at("judge"));
    CHECK(after[i].at("known") == after[0].at("known"));
  }
}

TEST_CASE("several networks: every layout trains them as one rank does") {
  const std::vector<Weights> alone = run_taught(1, "", 0, 5);
  for (const auto& [ranks, layout] : {std::pair(2, ""),
                                      {2, "shard: optimizer"},
                                      {3, "shard: optimizer"},
                                      {4, "shard: optimizer, replicate: 2"}}) {
    CAPTURE(ranks, layout);
    const std::vector<Weights> together = run_taught(ranks, layout, 0, 5);
    REQUIRE(together.size() == alone.size());
    for (std::size_t i = 0; i < alone.size(); ++i)
      CHECK(difference_of(alone[i], together[i]) < 1e-4);
    CHECK(together[0].at("known") == alone[0].at("known"));
  }
}

TEST_CASE("several networks: a checkpoint has all that are trained, and any ranks go on with it") {
  const TemporaryFolder folder;
  const std::vector<Weights> whole = run_taught(1, "", 0, 5, "", folder / "whole");
  run_taught(1, "", 0, 3, "", folder / "begun");
  const std::vector<Weights> rest =
      run_taught(1, "", 3, 5, checkpoint_path(folder / "begun", 3), folder / "ended");
  CHECK(rest.back() == whole.back());
  const auto files = [&](const char* run) {
    std::map<std::string, std::string> found;
    const std::string path = checkpoint_path(folder / run, 5);
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path))
      if (entry.is_regular_file())
        found[std::filesystem::relative(entry.path(), path)] = io::read_file(entry.path());
    return found;
  };
  const auto expected = files("whole");
  CHECK(files("ended") == expected);
  CHECK(expected.contains("networks/critic/diffusion_pytorch_model.safetensors"));
  CHECK(expected.contains("networks/critic/muon_m.safetensors"));
  CHECK_FALSE(expected.contains("networks/critic/ema.safetensors"));
  CHECK(expected.contains("state/ema.safetensors"));
  // Ranks that share the state write the same bytes of it.
  run_taught(2, "shard: optimizer", 3, 3, checkpoint_path(folder / "begun", 3), folder / "shared");
  const std::string one = checkpoint_path(folder / "begun", 3),
                    two = checkpoint_path(folder / "shared", 3);
  CHECK(io::read_file(one + "/COMPLETE") == io::read_file(two + "/COMPLETE"));
  CHECK(difference_of(run_taught(2, "shard: optimizer", 3, 5, one).back(), whole.back()) < 1e-4);
}

TEST_CASE("several networks: their cost is that of a step in which all are due") {
  const Recipe recipe = taught_recipe("");
  const MetaAccount account(Device::cpu);
  const std::unique_ptr<dist::World> world = dist::counted_world(0, 1);
  const Parallel parallel(recipe, *world);
  TrainingStep step(recipe, parallel,
                    std::make_unique<TaughtObjective>(parallel.network(), Device::meta),
                    recipe.ema);
  double kept = 0;
  for (const TrainingStep::Trained& network : step.networks())
    for (const OptimizerState& state : network.optimizer.state())
      for (const Tensor& tensor : state.tensors)
        kept += static_cast<double>(tensor.bytes());
  CHECK(kept == 2 * kWide * kWide * 8 + 5 * 2 * kWide * 4);
  CHECK(step.fullest_step() == 1);
  const auto bytes_of = [&](std::int64_t number) {
    std::vector<std::unique_ptr<Batch>> batches;
    batches.push_back(step.objective().blank({{}, {}}));
    const double before = account.work().bytes;
    step.set_step(number);
    step.pass_all(batches);
    step.sum();
    step.update(0, 1);
    return account.work().bytes - before;
  };
  const double some = bytes_of(0), all = bytes_of(1);
  CHECK(all - some >= 2 * kWide * kWide * (4 + 2 * 12));  // AdamW of the student and its average
}

TEST_CASE("several networks: what is not finite in one changes none") {
  const Recipe recipe = taught_recipe("");
  const std::unique_ptr<dist::World> world = dist::self_world();
  const Parallel parallel(recipe, *world);
  TrainingStep step(recipe, parallel,
                    std::make_unique<TaughtObjective>(parallel.network(), Device::cpu), recipe.ema);
  const Weights before = weights_of(step);
  step.set_step(1);
  std::vector<std::unique_ptr<Batch>> batches;
  batches.push_back(step.objective().build(1, 1, std::vector<PlacedSample>(1)));
  step.pass_all(batches);
  step.sum();
  step.objective().others().front().parameters->front()->grad.floats()[0] =
      std::numeric_limits<float>::infinity();
  CHECK_FALSE(std::isfinite(step.update(0.02, 1)));
  CHECK(weights_of(step) == before);
  CHECK(step.optimizer().updates == 0);
}
