// What ranks exchange beside computing: when it begins, and how much is computed until it is waited
// for. A rank counts on meta alone, so that work takes the place of time.
// SPDX-License-Identifier: Apache-2.0
#include <omp.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "parallel_cases.h"
#include "support/watched_world.h"
#include "tensor/meta.h"
#include "train/step/gradients.h"
#include "train/step/parallel.h"
#include "train/step/pipeline.h"
#include "train/step/trainer.h"
#include "train/step/training_step.h"

using namespace vfm;
using namespace vfm::train;
using dist::Operation;

namespace {

/// A rank of a training that counts.
struct Counting {
  Recipe recipe;
  std::unique_ptr<Dataset> data;
  Timeline timeline;
  MetaAccount account{Device::cpu};
  std::unique_ptr<dist::World> alone;
  std::unique_ptr<WatchedWorld> world;
  std::unique_ptr<Parallel> parallel;
  std::unique_ptr<Objective> objective;

  explicit Counting(const ParallelCase& one, int rank = 0)
      : recipe(recipe_of(one)), data(samples_of(one)) {
    data->fit(recipe);
    timeline.clock = [this] { return account.work().flops; };
    alone = dist::counted_world(rank, one.ranks);
    world = std::make_unique<WatchedWorld>(*alone, timeline);
    parallel = std::make_unique<Parallel>(recipe, *world);
    objective = kind_of(recipe.model.type)
                    .make_objective(recipe, nn::Recompute::none, Device::meta, parallel->network());
  }
  std::unique_ptr<Batch> batch() const {
    return objective->blank({data->entry(0), data->entry(1), data->entry(2)});
  }
  double work() const { return account.work().flops; }
};

/// How many operations were waited for before anything was computed.
std::ptrdiff_t exposed(const std::vector<double>& spans) {
  return std::ranges::count(spans, 0.0);
}

}  // namespace

TEST_CASE("a block is gathered while the one before it is computed, and its gradients go beside") {
  Counting rank({"dit", 2, "parallel: {shard: full}\nmodel: {num_layers: 6}"});
  const std::string axis = "tp+cp+shard";
  rank.objective->pass(*rank.batch(), true);
  const double all = rank.work();
  rank.parallel->blocks()->finish();
  const std::vector<double> gathers = rank.timeline.between(axis, Operation::all_gather),
                            sums = rank.timeline.between(axis, Operation::reduce_scatter);
  // Each block's matrices twice, and summed once.
  REQUIRE(gathers.size() % 12 == 0);
  const auto matrices = static_cast<std::ptrdiff_t>(gathers.size() / 12);
  REQUIRE(static_cast<std::ptrdiff_t>(sums.size()) == 6 * matrices);
  // Of the first block forward nothing hides the way, of the last one in backward the loss.
  CHECK(exposed(gathers) == matrices);
  // A block is some 1/6 of a third forward, and of two thirds in backward.
  const double block = all / 18;
  CHECK(std::ranges::count_if(gathers, [&](double span) { return span > 0.8 * block; }) ==
        10 * matrices);
  // The first block's are waited for at the end.
  CHECK(exposed(sums) <= matrices);
  CHECK(std::ranges::count_if(sums, [&](double span) { return span > 1.6 * block; }) ==
        5 * matrices);
  CHECK(std::ranges::none_of(sums, [](double span) { return span < 0; }));
}

TEST_CASE("gradients of data parallelism start in backward, and are waited for after it") {
  Counting rank({"dit", 2, "model: {num_layers: 6}"});
  GradientReducer reducer(rank.parallel->mesh(), rank.objective->parameters(), DType::f32, 300);
  rank.objective->pass(*rank.batch(), true, reducer.listener());
  const double all = rank.work();
  reducer.finish();
  std::ptrdiff_t early = 0, messages = 0;
  for (const Happened& one : rank.timeline.all)
    if (one.operation == Operation::all_reduce && one.what == Happened::issued)
      ++messages, early += one.at < all;
  CHECK(messages > 20);
  CHECK(early > messages * 4 / 5);
}

TEST_CASE("who watches a step is told of its parts in order, and sums begin after the passes") {
  using Part = TrainingStep::Part;
  Counting rank({"dit", 2, "model: {num_layers: 6}"});
  std::vector<std::unique_ptr<Batch>> batches;
  for (int i = 0; i < 2; ++i)
    batches.push_back(rank.batch());
  TrainingStep step(rank.recipe, *rank.parallel, std::move(rank.objective), rank.recipe.ema);
  std::vector<Part> parts;
  std::vector<std::size_t> exchanges;
  step.watch([&](Part part) {
    parts.push_back(part);
    exchanges.push_back(rank.timeline.all.size());
  });
  step.pass_all(batches);
  step.sum();
  step.update(0, 1);
  CHECK(parts == std::vector{Part::begun, Part::passed, Part::passed, Part::updated});
  REQUIRE(exchanges.size() == 4);
  CHECK(exchanges[2] == exchanges[0]);
  CHECK(exchanges[3] > exchanges[2]);
}

TEST_CASE("stages send and receive where the schedule has it, and compute meanwhile") {
  for (const int vpp : {1, 2}) {
    CAPTURE(vpp);
    std::ptrdiff_t early = 0;
    for (const int stage : {0, 1}) {
      Counting rank({"dit", 2,
                     "parallel: {pp: 2, vpp: " + std::to_string(vpp) +
                         "}\nmodel: {num_layers: 4}\ndata: {packs: 4, micro_packs: 1}"},
                    stage);
      const PipelineSchedule schedule = schedule_in_order({2, vpp}, std::vector<MicrobatchCost>(4));
      std::vector<std::unique_ptr<Batch>> batches;
      for (int i = 0; i < 4; ++i)
        batches.push_back(rank.batch());
      run_pipeline(rank.parallel->mesh(), *rank.objective, batches, schedule);
      std::vector<Operation> wanted, issued;
      for (const PipelineStep& step : schedule.ranks[static_cast<std::size_t>(stage)])
        if (step.kind == PipelineStep::Kind::send_stream ||
            step.kind == PipelineStep::Kind::send_gradient)
          wanted.push_back(Operation::send);
        else if (step.peer >= 0)
          wanted.push_back(Operation::receive);
      bool waited_for_send = false;
      for (const Happened& one : rank.timeline.all) {
        if (one.what == Happened::issued) issued.push_back(one.operation);
        // A send is waited for when all is computed, if at all.
        waited_for_send =
            waited_for_send || (one.what == Happened::awaited && one.operation == Operation::send &&
                                one.at < rank.work());
      }
      CHECK(issued == wanted);
      CHECK_FALSE(waited_for_send);
      const std::vector<double> receives = rank.timeline.between("pp", Operation::receive);
      early += static_cast<std::ptrdiff_t>(receives.size()) - exposed(receives);
    }
    // With as few microbatches under way as there may be, most come when they are wanted.
    CHECK(early > 0);
  }
}

TEST_CASE("a stage's gradients are summed while backward of its last microbatch goes on") {
  for (const auto& [shard, operation, vpp] : {std::tuple{"full", Operation::reduce_scatter, 1},
                                              {"full", Operation::reduce_scatter, 2},
                                              {"optimizer", Operation::reduce_scatter, 2},
                                              {"none", Operation::all_reduce, 1}})
    for (const int stage : {0, 1}) {
      CAPTURE(shard, vpp, stage);
      Counting rank({"dit", 4,
                     fmt::format("parallel: {{pp: 2, vpp: {}, shard: {}}}\nmodel: {{num_layers: "
                                 "8}}\ndata: {{packs: 6, micro_packs: 1}}",
                                 vpp, shard)},
                    2 * stage);
      GradientReducer reducer(rank.parallel->mesh(), rank.objective->parameters(), DType::f32, 300);
      nn::BlockShards* const blocks = rank.parallel->blocks();
      std::vector<std::unique_ptr<Batch>> batches;
      for (int i = 0; i < 3; ++i)
        batches.push_back(rank.batch());
      if (stage == 1) batches[1] = nullptr;  // whatever cannot be read
      FinalGradients gradients{.final = reducer.listener()};
      if (blocks != nullptr) {
        blocks->gather_all(true);
        gradients.blocks = {blocks};
      }
      run_pipeline(rank.parallel->mesh(), *rank.objective, batches,
                   schedule_in_order({2, vpp}, std::vector<MicrobatchCost>(3)), gradients);
      const double all = rank.work();
      if (blocks != nullptr) blocks->finish();
      reducer.finish();
      // Of 4 blocks a stage all but some begin before the last is done, and none of them before
      // the last microbatch; nothing is waited for until all is done.
      std::vector<double> begins;
      for (const Happened& one : rank.timeline.all) {
        if (one.operation != operation) continue;
        if (one.what == Happened::issued) begins.push_back(one.at / all);
        CHECK((one.what != Happened::awaited || one.at == all));
      }
      const auto early = std::ranges::count_if(begins, [](double at) { return at < 1; });
      CAPTURE(begins.size(), early);
      CHECK(early > 0);
      CHECK(*std::ranges::min_element(begins) > 0.6);
    }
}

TEST_CASE("keys go round while a rank attends over those that it has") {
  const auto exchanges = [](const std::string& settings, int ranks) {
    Counting rank(
        {"dit", ranks, "parallel: {cp_kind: ring, " + settings + "}\nmodel: {num_layers: 2}"});
    rank.objective->pass(*rank.batch(), true);
    return rank.timeline.between("cp", Operation::exchange);
  };
  // Per attention three forward; in backward three, and three of their gradients, of which half of
  // the own keys hides the last one.
  const std::vector<double> of_four = exchanges("cp: 4", 4);
  REQUIRE(of_four.size() == 2 * 9);
  CHECK(exposed(of_four) == 0);
  const std::vector<double> of_two = exchanges("cp: 2", 2);
  REQUIRE(of_two.size() == 2 * 3);
  CHECK(exposed(of_two) == 0);
}

TEST_CASE("rows travel along tp while others are multiplied") {
  const auto spans = [](const std::string& settings, int ranks, Operation operation) {
    Counting rank({"dit", ranks, "parallel: {" + settings + "}\nmodel: {num_layers: 2}"});
    rank.objective->pass(*rank.batch(), true);
    return rank.timeline.between("tp", operation);
  };
  // Two blocks gather three times and sum three times, and backward does the reverse of each.
  const std::vector<double> whole = spans("tp: 2", 2, Operation::all_gather);
  CHECK(whole.size() == 2 * 6);
  CHECK(exposed(whole) == 12);
  for (const auto& [settings, ranks, messages] : {std::tuple{"tp: 2, tp_chunks: 2", 2, 1},
                                                  {"tp: 2, tp_chunks: 4", 2, 2},
                                                  {"tp: 4, tp_chunks: 8", 4, 6}}) {
    CAPTURE(settings);
    const std::vector<double> chunks = spans(settings, ranks, Operation::exchange);
    CHECK(chunks.size() == static_cast<std::size_t>(2 * 12 * messages));
    CHECK(exposed(chunks) == 0);
    CHECK(std::ranges::none_of(chunks, [](double span) { return span < 0; }));
    CHECK(spans(settings, ranks, Operation::all_gather).empty());
    CHECK(spans(settings, ranks, Operation::reduce_scatter).empty());
  }
}

TEST_CASE("what is waited for at once has the same bits") {
  const std::vector<ParallelCase> cases = {
      {"dit", 2, "parallel: {shard: full}\nmodel: {num_layers: 3}"},
      {"dit", 2, "model: {num_layers: 3}"},
      {"dit", 2, "parallel: {cp: 2, cp_kind: ring}"},
      {"dit", 2, "parallel: {tp: 2, tp_chunks: 4}"},
      {"dit", 2, "parallel: {pp: 2}\nmodel: {num_layers: 2}\ndata: {micro_packs: 1}"},
      {"dit", 4,
       "parallel: {pp: 2, vpp: 2, shard: full}\nmodel: {num_layers: 6}\n"
       "data: {packs: 6, micro_packs: 1}"}};
  for (const ParallelCase& one : cases) {
    CAPTURE(one.settings);
    Recipe recipe = recipe_of(one);
    const auto data = samples_of(one);
    data->fit(recipe);
    std::mutex mutex;
    const auto steps = [&](bool at_once) {
      std::map<std::string, std::vector<float>> weights;
      dist::thread_worlds(one.ranks, [&](dist::World& world) {
        omp_set_num_threads(1);
        Timeline timeline{[] { return 0.0; }, at_once};
        WatchedWorld watched(world, timeline);
        Trainer trainer(recipe, *data, watched);
        trainer.train_step();
        trainer.train_step();
        const std::lock_guard lock(mutex);
        for (const nn::Parameter* p : trainer.shards().states())
          weights[p->name + std::to_string(world.rank())].assign(p->read().floats().begin(),
                                                                 p->read().floats().end());
      });
      return weights;
    };
    const auto beside = steps(false);
    CHECK(beside == steps(true));
    CHECK_FALSE(beside.empty());
  }
}
