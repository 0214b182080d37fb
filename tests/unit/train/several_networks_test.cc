// A step that trains two networks beside a frozen one, each with its optimizer and rhythm.
// SPDX-License-Identifier: Apache-2.0
#include <omp.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/philox.h"
#include "dist/threads.h"
#include "latents_fixture.h"
#include "nn/block_weights.h"
#include "nn/linear.h"
#include "nn/network_layout.h"
#include "tensor/meta.h"
#include "train/checkpoint/checkpoint.h"
#include "train/recipe/recipe_file.h"
#include "train/step/pipeline_schedule.h"
#include "train/step/training_step.h"

using namespace vfm;
using namespace vfm::train;

namespace {

constexpr std::int64_t kWide = 12;
constexpr std::size_t kSamplesOfStep = 4;
constexpr int kBlocks = 6;

/// Matrices, one after the other, each a block: NAME.0, NAME.1, ...
class TaughtNetwork {
 public:
  TaughtNetwork(const std::string& name, const nn::NetworkLayout& layout, nn::BlockShards* blocks,
                Device device, bool trained) {
    nn::WeightOptions options;
    options.seed = 3;
    options.device = device;
    options.state = layout.state;
    options.blocks = blocks;
    options.of_products = true;
    options.trainable = trained;
    for (int i = 0; i < kBlocks; ++i) {
      by_block_.begin();
      options.absent = !layout.has_block(i, kBlocks);
      weights_.emplace_back(std::vector{name + "." + std::to_string(i)}, Shape{kWide, kWide},
                            options);
      nn::Parameter& made = weights_.back().parameters().front();
      parameters_.push_back(&made);
      if (!trained && device != Device::meta && made.here())
        nn::draw(made.state ? *made.state : made, nn::Init::xavier, 5);
    }
    by_block_.gather_by(blocks);
  }

  const nn::ParameterList& parameters() const { return parameters_; }

  Tensor forward(ops::Tape& tape, Tensor x, nn::BlockRange blocks = {0, kBlocks}) const {
    for (std::size_t i = blocks.begin; i < blocks.end; ++i)
      weights_[i].watch(tape);
    for (std::size_t i = blocks.begin; i < blocks.end; ++i) {
      by_block_.enter(tape, i);
      x = nn::Linear(weights_[i]).forward(tape, x);
    }
    if (blocks.end == kBlocks) by_block_.leave(tape);
    return x;
  }

  /// The whole matrices of this rank's blocks, by name. A collective.
  void add_to(std::map<std::string, std::vector<float>>& weights) const {
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      const nn::Weight& weight = weights_[i];
      const nn::Parameter& parameter = *parameters_[i];
      if (!parameter.here()) continue;
      const Tensor all = weight.sharded() ? weight.sharded()->gather() : parameter.value;
      weights[parameter.name].assign(all.floats().begin(), all.floats().end());
    }
  }

 private:
  std::deque<nn::Weight> weights_;
  nn::BlockWeights by_block_{weights_};
  nn::ParameterList parameters_;
};

struct TaughtBatch final : Batch {
  Tensor x;
  double loss = 0;
};

/// The gradient of half the squares of a - b, which are added to `squares`.
Tensor missed(const Tensor& a, const Tensor& b, double& squares) {
  const Tensor difference = a.clone();
  if (a.device() == Device::meta) return difference;
  for (std::size_t i = 0; i < a.floats().size(); ++i) {
    difference.floats()[i] -= b.floats()[i];
    squares += std::pow(difference.floats()[i], 2);
  }
  return difference;
}

/// A student follows a frozen teacher, and a critic what the student makes.
struct TaughtNetworks {
  TaughtNetworks(const nn::NetworkLayout& ranks, Device device)
      : layout(ranks),
        of_teacher(ranks.blocks ? ranks.blocks->another() : nullptr),
        of_critic(ranks.blocks ? ranks.blocks->another() : nullptr),
        student("student", ranks, ranks.blocks, device, true),
        teacher("teacher", ranks, of_teacher.get(), device, false),
        critic("critic", ranks, of_critic.get(), device, true) {}

  const nn::NetworkLayout layout;
  const std::unique_ptr<nn::BlockShards> of_teacher, of_critic;
  const TaughtNetwork student, teacher, critic;
};

/// All three pass together, and each hands on what it made. Nothing comes back to the teacher.
class TaughtPass final : public ChunkedPass {
 public:
  TaughtPass(const TaughtNetworks& networks, TaughtBatch& batch, const ops::Tape::Listener& final)
      : networks_(networks), batch_(batch) {
    if (final) tape_.listen(final);
  }

  nn::Streams blank(int /*chunk*/, Side /*side*/) const override {
    nn::Streams streams;
    for (int i = 0; i < 3; ++i)
      streams.push_back(Tensor::zeros(batch_.x.shape(), DType::f32, Device::cpu));
    return streams;
  }
  nn::Streams forward(int /*chunk*/, nn::Streams streams) override {
    const nn::NetworkLayout& layout = networks_.layout;
    if (layout.first_stage()) streams = {batch_.x, batch_.x, batch_.x};
    gradients_ = blank(0, Side::input);
    for (const std::size_t i : {0U, 2U})
      if (!layout.first_stage())
        tape_.arrive(streams[i], [this, i](Tensor got) { gradients_[i] = std::move(got); });
    const TaughtNetwork* const all[] = {&networks_.student, &networks_.teacher, &networks_.critic};
    for (std::size_t i = 0; i < 3; ++i)
      made_.push_back(all[i]->forward(tape_, streams[i], layout.chunks(kBlocks).front()));
    if (!layout.last_stage()) return made_;
    const Tensor of_student = missed(made_[0], made_[1], batch_.loss);
    seeds_ = {of_student, {}, missed(made_[2], made_[0], batch_.loss)};
    return {};
  }
  void expect_backward(int /*chunk*/) override { tape_.wake(); }
  nn::Streams backward(int /*chunk*/, nn::Streams gradients) override {
    nn::backward(tape_, made_, networks_.layout.last_stage() ? seeds_ : gradients);
    made_.clear();
    return networks_.layout.first_stage() ? nn::Streams() : gradients_;
  }

 private:
  const TaughtNetworks& networks_;
  TaughtBatch& batch_;
  ops::Tape tape_;
  nn::Streams made_, seeds_, gradients_;
};

/// The student moves in every second step, the critic in every step.
class TaughtObjective : public Objective {
 public:
  TaughtObjective(const nn::NetworkLayout& layout, Device device)
      : device_(device), networks_(layout, device) {
    critics_.kind = "muon";
    critics_.lr = 2e-2;
    critics_.clip = 0;
  }

  const TaughtNetworks& networks() const { return networks_; }
  const nn::ParameterList& parameters() const override { return networks_.student.parameters(); }
  int every() const override { return 2; }
  std::vector<OtherNetwork> others() const override {
    return {{"critic", &networks_.critic.parameters(), 1, critics_, networks_.of_critic.get()}};
  }
  std::vector<nn::BlockPass> passes() const override {
    using enum nn::BlockShards::Way;
    nn::BlockShards* const student = networks_.layout.blocks;
    if (student == nullptr) return {};
    return {{student, recorded},
            {networks_.of_teacher.get(), forward},
            {student, backward},
            {networks_.of_critic.get(), recorded},
            {networks_.of_critic.get(), backward}};
  }
  const nn::ParameterList& frozen() const override { return networks_.teacher.parameters(); }
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
    ops::Tape tape, judged, silent(false);
    for (ops::Tape* const one : {&tape, &judged}) {
      if (first) one->replace_gradients();
      if (final) one->listen(final);
    }
    const Tensor made = networks_.student.forward(tape, batch.x);
    const Tensor known = networks_.teacher.forward(silent, batch.x);
    tape.backward(made, missed(made, known, batch.loss));
    const Tensor said = networks_.critic.forward(judged, batch.x);
    judged.backward(said, missed(said, made, batch.loss));
  }
  std::unique_ptr<ChunkedPass> pass_in_chunks(Batch& batch,
                                              const ops::Tape::Listener& final) const override {
    return std::make_unique<TaughtPass>(networks_, dynamic_cast<TaughtBatch&>(batch), final);
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
  const Device device_;
  OptimizerRecipe critics_;
  TaughtNetworks networks_;
};

using Weights = std::map<std::string, std::vector<float>>;

Recipe taught_recipe(const std::string& parallel) {
  auto settings =
      parse_yaml("model: {num_layers: 6}\noptimizer: {lr: 0.02}\nema: {decay: 0.5}\nparallel: {" +
                     parallel + "}\n",
                 "recipe");
  return make_recipe(settings);
}

/// A step with the samples of this rank. Adds their loss to `loss`.
double run_step(TrainingStep& step, const Parallel& parallel, std::uint32_t number, double& loss) {
  std::vector<std::unique_ptr<Batch>> batches;
  const auto ranks = static_cast<std::size_t>(parallel.data_ranks());
  for (auto place = static_cast<std::size_t>(parallel.data_rank()); place < kSamplesOfStep;
       place += ranks) {
    PlacedSample sample;
    sample.place = place;
    std::vector<PlacedSample> samples;
    samples.push_back(std::move(sample));
    batches.push_back(step.objective().build(number, kSamplesOfStep, samples));
  }
  PipelineSchedule schedule;
  if (parallel.network().pp_size() > 1)
    schedule = schedule_in_order({parallel.network().pp_size()},
                                 std::vector<MicrobatchCost>(batches.size()));
  step.pass_all(batches, schedule, static_cast<int>((kSamplesOfStep + ranks - 1) / ranks));
  step.sum();
  for (const std::unique_ptr<Batch>& batch : batches)
    loss += step.objective().loss(*batch).image_sum;
  return step.update(0.02, 0.1);
}

std::vector<OtherState> others_of(TrainingStep& step) {
  return {{step.networks()[1].name, step.networks()[1].optimizer}};
}

/// Of this rank's blocks. A collective.
Weights weights_of(const TrainingStep& step) {
  const TaughtNetworks& networks =
      dynamic_cast<const TaughtObjective&>(step.objective()).networks();
  Weights weights;
  for (const TaughtNetwork* network : {&networks.student, &networks.teacher, &networks.critic})
    network->add_to(weights);
  return weights;
}

/// Steps `from` to `to` of a run that continues at `checkpoint`, if it is not "", and saves the
/// last one in `out`. Returns the weights before the first step and after each, with the "loss".
std::vector<Weights> run_taught(int ranks, const std::string& layout, std::uint32_t from,
                                std::uint32_t to, const std::string& checkpoint = {},
                                const std::string& out = {}) {
  std::vector<Weights> after(to - from + 1);
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
    const auto keep = [&](std::uint32_t i, double loss) {
      world.all_reduce_sum(std::span(&loss, 1));
      Weights own = weights_of(step);
      own["loss"] = {static_cast<float>(loss)};
      const std::lock_guard lock(mutex);
      after[i - from].merge(own);
    };
    keep(from, 0);
    for (std::uint32_t i = from; i < to; ++i) {
      double loss = 0;
      if (!std::isfinite(run_step(step, parallel, i, loss))) fail("step {} is not finite", i);
      keep(i + 1, loss);
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

/// The largest of any weight, or of the loss: in proportion to its size.
double difference_of(const Weights& a, const Weights& b) {
  double largest = a.size() == b.size() ? 0 : 1;
  for (const auto& [name, values] : a) {
    double difference = 0, all = 1e-30;
    for (std::size_t i = 0; i < values.size(); ++i) {
      difference += std::pow(values[i] - b.at(name)[i], 2);
      all += std::pow(values[i], 2);
    }
    largest = std::max(largest, std::sqrt(difference / all));
  }
  return largest;
}

constexpr const char* kTwoStages = "pp: 2, stages: [3, 3]";

}  // namespace

TEST_CASE("several networks: each moves in its rhythm, and a frozen one never") {
  const std::vector<Weights> after = run_taught(1, "", 0, 4);
  for (std::size_t i = 1; i < after.size(); ++i) {
    CHECK((after[i].at("student.0") != after[i - 1].at("student.0")) == (i % 2 == 0));
    CHECK((after[i].at("student.5") != after[i - 1].at("student.5")) == (i % 2 == 0));
    CHECK(after[i].at("critic.0") != after[i - 1].at("critic.0"));
    CHECK(after[i].at("teacher.0") == after[0].at("teacher.0"));
  }
}

TEST_CASE("several networks: every layout trains them as one rank does") {
  const std::vector<Weights> alone = run_taught(1, "", 0, 5);
  const std::string stages = kTwoStages;
  for (const auto& [ranks, layout] :
       std::vector<std::pair<int, std::string>>{{2, ""},
                                                {2, "shard: optimizer"},
                                                {3, "shard: optimizer"},
                                                {4, "shard: optimizer, replicate: 2"},
                                                {2, "shard: full"},
                                                {3, "shard: full, reshard: false"},
                                                {4, "shard: full, replicate: 2"},
                                                {6, "shard: full"},
                                                {2, stages},
                                                {6, stages + ", shard: optimizer"},
                                                {6, stages + ", shard: full"}}) {
    CAPTURE(ranks, layout);
    const std::vector<Weights> together = run_taught(ranks, layout, 0, 5);
    REQUIRE(together.size() == alone.size());
    for (std::size_t i = 0; i < alone.size(); ++i)
      CHECK(difference_of(alone[i], together[i]) < 1e-4);
    CHECK(together[0].at("teacher.0") == alone[0].at("teacher.0"));
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
  // Ranks that share the state or the weights write the same bytes of them.
  const std::string one = checkpoint_path(folder / "begun", 3);
  for (const std::string layout : {"shard: optimizer", "shard: full", kTwoStages}) {
    CAPTURE(layout);
    run_taught(2, layout, 3, 3, one, folder / "shared");
    const std::string two = checkpoint_path(folder / "shared", 3);
    CHECK(io::read_file(one + "/COMPLETE") == io::read_file(two + "/COMPLETE"));
    const std::vector<Weights> later = run_taught(2, layout, 3, 5, two);
    for (std::size_t i = 1; i < later.size(); ++i)
      CHECK(difference_of(later[i], whole[3 + i]) < 1e-4);
  }
}

TEST_CASE("several networks: passes in another order than their objective says are refused") {
  struct Hasty final : TaughtObjective {
    using TaughtObjective::TaughtObjective;
    std::vector<nn::BlockPass> passes() const override {
      std::vector<nn::BlockPass> all = TaughtObjective::passes();
      std::swap(all[1], all[2]);
      return all;
    }
  };
  struct Entangled final : TaughtObjective {
    using TaughtObjective::TaughtObjective;
    void pass(Batch& batch, bool /*first*/, const ops::Tape::Listener& /*final*/) const override {
      ops::Tape tape, silent(false);
      const Tensor half =
          networks().student.forward(tape, dynamic_cast<TaughtBatch&>(batch).x, {0, 1});
      networks().teacher.forward(silent, half);
    }
  };
  struct Forgetful final : TaughtObjective {
    using TaughtObjective::TaughtObjective;
    std::vector<nn::BlockPass> passes() const override { return {}; }
  };
  const auto run = [](dist::World& world, const auto& make) {
    const Recipe recipe = taught_recipe("shard: full");
    const Parallel parallel(recipe, world);
    TrainingStep step(recipe, parallel, make(parallel.network()), recipe.ema);
    double loss = 0;
    run_step(step, parallel, 0, loss);
  };
  // Of five ranks the last one has no sample.
  for (const int ranks : {2, 5}) {
    const auto hasty = [](const nn::NetworkLayout& layout) {
      return std::make_unique<Hasty>(layout, Device::cpu);
    };
    CHECK_THROWS_WITH(dist::thread_worlds(ranks, [&](dist::World& w) { run(w, hasty); }),
                      Catch::Contains("pass 1 of a batch") && Catch::Contains("passes() says"));
    const auto entangled = [](const nn::NetworkLayout& layout) {
      return std::make_unique<Entangled>(layout, Device::cpu);
    };
    CHECK_THROWS_WITH(dist::thread_worlds(ranks, [&](dist::World& w) { run(w, entangled); }),
                      Catch::Contains("begins before the last one has ended"));
    const auto forgetful = [](const nn::NetworkLayout& layout) {
      return std::make_unique<Forgetful>(layout, Device::cpu);
    };
    CHECK_THROWS_WITH(dist::thread_worlds(ranks, [&](dist::World& w) { run(w, forgetful); }),
                      Catch::Contains("'critic' gathers its blocks, but"));
  }
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
  CHECK(kept == kBlocks * kWide * kWide * (8 + 4));
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
  CHECK(all - some >=
        kBlocks * kWide * kWide * (4 + 2 * 12));  // AdamW of the student and its average
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
