// What goes wrong between ranks is noticed by vfm-train's proof of a layout, which names
// parameters.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "faulty_world.h"
#include "parallel_cases.h"
#include "train/check/check_steps.h"
#include "train/step/trainer.h"
#include "train/step/validation.h"

using namespace vfm;
using namespace vfm::train;
using dist::Operation;

namespace {

const std::string
    kGather = "parallel: {tp: 2, cp: 2, cp_kind: gather}",
    kHeads = "parallel: {tp: 2, cp: 2, cp_kind: all_to_all}",
    kRing = "parallel: {tp: 2, cp: 2, cp_kind: ring}",
    kHybrid = "parallel: {tp: 2, cp: 2, cp_kind: gather, hybrid: true}\ndata: {micro_packs: 1}",
    kData = "parallel: {tp: 2, cp: 1}", kChunks = "parallel: {tp: 2, tp_chunks: 4}",
    kStages = "parallel: {tp: 2, pp: 2}\nmodel: {num_layers: 2}",
    kFourPacks = kStages + "\ndata: {packs: 4, micro_packs: 1}",
    kShards = "parallel: {tp: 2, shard: optimizer}",
    kFull = "model: {num_layers: 3}\nparallel: {tp: 2, shard: full}",
    kStagesFull = "model: {num_layers: 2}\nparallel: {pp: 2, shard: full}";

struct Planted {
  const char* what;
  std::string settings;
  Fault fault;
};

const std::vector<Planted> kFaults = {
    {"a rank is left out of the sum of what all have",
     kHeads,
     {"tp+cp+dp", Operation::all_reduce, Fault::leaves_out}},
    {"the sum of what all have is scaled",
     kHeads,
     {"tp+cp+dp", Operation::all_reduce, Fault::scales}},
    {"a rank has a sum of its own", kHeads, {"tp+cp+dp", Operation::all_reduce, Fault::strays}},
    {"what all have is summed over half of the ranks",
     kHeads,
     {"tp+cp+dp", Operation::all_reduce, Fault::regroups}},
    {"parts are not summed over cp", kHeads, {"cp+dp", Operation::all_reduce, Fault::skips}},
    {"parts are not summed over dp", kData, {"cp+dp", Operation::all_reduce, Fault::skips}},
    {"a rank of dp is left out of the sum of parts",
     kData,
     {"cp+dp", Operation::all_reduce, Fault::leaves_out}},
    {"rows gathered for a matrix change places",
     kHeads,
     {"tp", Operation::all_gather, Fault::swaps}},
    {"rows gathered in backward change places",
     kHeads,
     {"tp", Operation::all_gather, Fault::swaps, 3}},
    {"a rank is left out of the sum after a matrix",
     kHeads,
     {"tp", Operation::reduce_scatter, Fault::leaves_out}},
    {"the sum after a matrix is scaled", kHeads, {"tp", Operation::reduce_scatter, Fault::scales}},
    {"the sum in backward is scaled", kHeads, {"tp", Operation::reduce_scatter, Fault::scales, 3}},
    {"a chunk of rows is scaled", kChunks, {"tp", Operation::exchange, Fault::scales}},
    {"a rank sends no rows in chunks", kChunks, {"tp", Operation::exchange, Fault::leaves_out}},
    {"a chunk that is summed in backward is scaled",
     kChunks,
     {"tp", Operation::exchange, Fault::scales, 14}},
    {"a chunk is what the one before was", kChunks, {"tp", Operation::exchange, Fault::repeats, 1}},
    {"heads change places", kHeads, {"cp", Operation::all_to_all, Fault::swaps}},
    {"heads change places in backward", kHeads, {"cp", Operation::all_to_all, Fault::swaps, 2}},
    {"a pack is split in another order than it is put together",
     kHeads,
     {"cp", Operation::all_to_all, Fault::splits}},
    {"a pack is split in another order than it is gathered",
     kGather,
     {"cp", Operation::all_gather, Fault::splits}},
    {"a rank's keys are missing", kGather, {"cp", Operation::all_gather, Fault::leaves_out}},
    {"the gradients of other ranks' keys are lost",
     kGather,
     {"cp", Operation::reduce_scatter, Fault::skips}},
    {"a rank is left out of the sum of a shard",
     kShards,
     {"tp+cp+shard", Operation::reduce_scatter, Fault::leaves_out}},
    {"a shard is reduced twice", kShards, {"cp+shard", Operation::reduce_scatter, Fault::scales}},
    {"shards are not summed", kShards, {"cp+shard", Operation::reduce_scatter, Fault::skips}},
    // From the second message on: weights travel twice before the step, and would change back.
    {"shards change places", kShards, {"cp+shard", Operation::all_gather, Fault::swaps, 1}},
    {"a rank's weights are stale", kShards, {"cp+shard", Operation::all_gather, Fault::leaves_out}},
    {"a gathered block is stale", kFull, {"cp+shard", Operation::all_gather, Fault::skips, 30}},
    {"a block's matrix changes places", kFull, {"cp+shard", Operation::all_gather, Fault::swaps}},
    {"a block's gradient is reduced twice",
     kFull,
     {"cp+shard", Operation::reduce_scatter, Fault::scales}},
    {"a rank is left out of a block's gradient",
     kFull,
     {"cp+shard", Operation::reduce_scatter, Fault::leaves_out}},
    {"keys that go round are scaled", kRing, {"cp", Operation::exchange, Fault::scales}},
    {"a rank sends no keys round", kRing, {"cp", Operation::exchange, Fault::leaves_out}},
    {"gradients that go round are scaled", kRing, {"cp", Operation::exchange, Fault::scales, 2}},
    {"what all stages have is not summed over them",
     kStages,
     {"tp+cp+dp+pp", Operation::all_reduce, Fault::skips}},
    {"a stage is left out of that sum",
     kStages,
     {"tp+cp+dp+pp", Operation::all_reduce, Fault::leaves_out}},
    {"what passes between stages is scaled", kStages, {"pp", Operation::receive, Fault::scales}},
    {"the second microbatch comes to a stage scaled",
     kStages,
     {"pp", Operation::receive, Fault::scales, 1}},
    {"a stage gets the microbatch before instead",
     kStages,
     {"pp", Operation::receive, Fault::repeats, 1}},
    {"a gathered weight of a stage is stale",
     kStagesFull,
     {"tp+cp+shard", Operation::all_gather, Fault::skips, 6}},
    {"what all stages have is reduced twice",
     kStagesFull,
     {"tp+cp+shard+pp", Operation::reduce_scatter, Fault::scales}},
    {"a stage lacks the others' part of that sum",
     kStagesFull,
     {"pp", Operation::all_gather, Fault::skips}},
    // In the first step alone: they do so by twos.
    {"two microbatches change places",
     kFourPacks,
     {"pp", Operation::receive, Fault::exchanges, 0, 0, 4}},
    // If they do so on both ways, pixels have other numbers, and nothing is wrong.
    {"two frames change places on the way back",
     kHybrid,
     {"cp", Operation::all_to_all, Fault::swaps, 1}},
    {"two frames change places in backward",
     kHybrid,
     {"cp", Operation::all_to_all, Fault::swaps, 2}},
    {"a rank keeps its tokens from the others' pixels",
     kHybrid,
     {"cp", Operation::all_to_all, Fault::leaves_out}},
    {"pixels are scaled on the way back", kHybrid, {"cp", Operation::all_to_all, Fault::scales, 1}},
};

/// Texts of one word again and again, so that all that chooses among words has only rounding as its
/// gradient.
class OneWord final : public train::Dataset {
 public:
  explicit OneWord(const Dataset& data) : data_(data) {}
  const data::SampleIndex& index() const override { return data_.index(); }
  const Json& info() const override { return data_.info(); }

 private:
  void fit_model(Recipe& recipe) const override { data_.fit(recipe); }
  CleanSample read_sample(std::size_t i, std::optional<SeenAt> seen) const override {
    CleanSample sample = data_.read(i, seen);
    const std::size_t width = sample.text.size() / 3;
    for (std::size_t k = width; k < sample.text.size(); ++k)
      sample.text[k] = sample.text[k - width];
    return sample;
  }
  const Dataset& data_;
};

bool names_a_parameter(const ParallelCheck& check) {
  return std::ranges::any_of(check.values, [](const ComparedValue& value) {
    return !value.good() && value.name.ends_with(".weight");
  });
}

/// Each of `step` faults that a type of network can have is noticed.
void notice_faults(const std::vector<std::string>& types, std::size_t step) {
  for (const std::string& type : types) {
    int noticed = 0;
    for (std::size_t i = 0; i < kFaults.size(); i += step) {
      const Planted& planted = kFaults[i];
      if (type == "stdit" && (planted.settings == kGather || planted.settings == kRing)) continue;
      if (type != "stdit" && planted.settings == kHybrid) continue;
      // It has nothing that is on all stages.
      const bool all_stages =
          planted.fault.axis == "tp+cp+dp+pp" || planted.fault.axis == "tp+cp+shard+pp" ||
          (planted.fault.axis == "pp" && planted.fault.operation == Operation::all_gather);
      if (type == "autoregressive" && (planted.settings == kRing || all_stages)) continue;
      // Only what is as long can change places.
      const bool alike = planted.settings == kHybrid || planted.settings == kFourPacks;
      if (type == "autoregressive" && alike) continue;
      // Of samples that one rank has whole nothing would move in a hybrid.
      const Samples samples = alike ? Samples::one_a_pack : Samples::mixed;
      const ParallelCheck check = check_case(
          {type, 4, planted.settings, samples},
          [&](dist::World& world) { return std::make_unique<FaultyWorld>(world, planted.fault); });
      INFO(type << ": " << planted.what << "\n" << check.words());
      CHECK_FALSE(check.passed);
      CHECK(names_a_parameter(check));
      noticed += check.passed ? 0 : 1;
    }
    CHECK(noticed >= 8);
  }
}

}  // namespace

TEST_CASE("check parallel: some of what goes wrong between ranks is noticed") {
  notice_faults({"dit"}, 4);
}

TEST_CASE("check parallel: what goes wrong between ranks is noticed", "[long][nightly]") {
  notice_faults({"dit", "stdit", "moviegen", "autoregressive"}, 1);
}

TEST_CASE("check parallel: limits by rounding hide nothing that goes wrong") {
  const std::string heads = "\nmodel: {num_attention_heads: 2}", ring = kRing + heads,
                    gather = kGather + heads;
  for (const Planted& planted : std::vector<Planted>{
           {"keys that go round are scaled", ring, {"cp", Operation::exchange, Fault::scales}},
           {"a rank sends no keys round", ring, {"cp", Operation::exchange, Fault::leaves_out}},
           {"gradients that go round are scaled",
            ring,
            {"cp", Operation::exchange, Fault::scales, 2}},
           {"the gradients of other ranks' keys are lost",
            gather,
            {"cp", Operation::reduce_scatter, Fault::skips}},
           {"the sum after a matrix is scaled",
            gather,
            {"tp", Operation::reduce_scatter, Fault::scales}},
           {"parts are not summed over cp",
            ring,
            {"cp+dp", Operation::all_reduce, Fault::skips}}}) {
    const ParallelCheck check = check_case({"wan", 4, planted.settings}, [&](dist::World& world) {
      return std::make_unique<FaultyWorld>(world, planted.fault);
    });
    INFO(planted.what << "\n" << check.words());
    CHECK_FALSE(check.passed);
    CHECK(names_a_parameter(check));
  }
}

TEST_CASE("check parallel: gradients that rounding decides have no verdict, all others have") {
  const MakeData one_word = [](const Dataset& data, int /*rank*/) {
    return std::make_unique<OneWord>(data);
  };
  const std::string chosen = "transformer_blocks.0.attn2.to_k.weight", tp = "parallel: {tp: 2}",
                    ring = "parallel: {cp: 2, cp_kind: ring}", low = "\nmodel: {compute: bf16}";
  for (const std::string& settings : {tp, ring, tp + low}) {
    const ParallelCheck check = check_case({"wan", 2, settings}, {}, one_word);
    INFO(settings << "\n" << check.words());
    CHECK(check.passed);
    for (const ComparedValue& value : check.values) {
      const bool decided = value.name.find(".attn2.to_q") != std::string::npos ||
                           value.name.find(".attn2.to_k") != std::string::npos ||
                           value.name.find(".attn2.norm_") != std::string::npos ||
                           value.name.find(".norm2.") != std::string::npos;
      CHECK((value.without == "rounding decides it") == decided);
      if (value.name == chosen) CHECK((value.difference > value.limit && value.together > 0));
      // The later updates of such parameters differ by more than others may.
      if (value.name == "update of steps 2 to 4" && settings != tp + low)
        CHECK((value.difference > 1e-3 && value.limit == 0.5));
    }
  }
  for (const Fault& fault : {Fault{"cp", Operation::exchange, Fault::scales},
                             Fault{"cp", Operation::exchange, Fault::leaves_out},
                             Fault{"cp+dp", Operation::all_reduce, Fault::skips}}) {
    const ParallelCheck check = check_case(
        {"wan", 4, kRing},
        [&](dist::World& world) { return std::make_unique<FaultyWorld>(world, fault); }, one_word);
    INFO(check.words());
    CHECK_FALSE(check.passed);
    CHECK(names_a_parameter(check));
  }
}

TEST_CASE("check parallel: ranks that share random numbers are noticed") {
  for (const std::string type : {"dit", "stdit", "moviegen"}) {
    const ParallelCheck check = check_case({type, 2, ""}, {}, [](const Dataset& data, int rank) {
      return rank > 0 ? std::make_unique<OneStream>(data) : nullptr;
    });
    INFO(type << "\n" << check.words());
    CHECK_FALSE(check.passed);
    CHECK(names_a_parameter(check));
  }
}

TEST_CASE(
    "check parallel: what goes wrong in the norm, the update and the new weights is noticed") {
  const std::string optimizer = "parallel: {shard: optimizer}", heads = "parallel: {tp: 2}";
  struct PlantedLater {
    const char* what;
    std::string settings, named;
    Fault fault;
  };
  const Operation sum = Operation::all_reduce, gather = Operation::all_gather;
  for (const PlantedLater& planted : std::vector<PlantedLater>{
           {"a norm that counts shards twice",
            optimizer,
            "gradient norm",
            {"tp+cp+shard", sum, Fault::scales}},
           {"clipping by a local norm",
            optimizer,
            "gradient norm",
            {"tp+cp+shard", sum, Fault::skips}},
           {"a rank's norm is lost",
            "parallel: {shard: full}",
            "gradient norm",
            {"tp+cp+shard", sum, Fault::leaves_out}},
           {"a norm that counts parts of tp twice",
            heads,
            "gradient norm",
            {"tp", sum, Fault::scales}},
           {"a norm that counts the stages twice",
            "parallel: {pp: 2}\nmodel: {num_layers: 2}",
            "gradient norm",
            {"pp", sum, Fault::scales}},
           {"one rank clips by another norm", heads, "update", {"tp", sum, Fault::strays}},
           {"one rank decides to skip the step", heads, "update", {"tp", sum, Fault::breaks}},
           // The weights travel once when they are drawn, once as they begin, and after the update.
           {"new weights that do not arrive",
            optimizer,
            "update",
            {"tp+cp+shard", gather, Fault::skips, 2}}}) {
    const ParallelCheck check = check_case({"dit", 2, planted.settings}, [&](dist::World& world) {
      return std::make_unique<FaultyWorld>(world, planted.fault);
    });
    INFO(planted.what << "\n" << check.words());
    CHECK_FALSE(check.passed);
    std::vector<std::string> faults;
    for (const ComparedValue& value : check.values)
      if (!value.good()) faults.push_back(value.name);
    CHECK(std::ranges::count(faults, planted.named) == 1);
    CHECK_FALSE(names_a_parameter(check));  // the gradients are good
  }
}

namespace {

std::vector<std::string> faults_of(const ParallelCheck& check) {
  std::vector<std::string> faults;
  for (const ComparedValue& value : check.values)
    if (!value.good()) faults.push_back(value.name);
  return faults;
}

/// Calls of rank 0 after each step, and at the end.
std::vector<int> calls_by_step(const ParallelCase& one, const std::string& axis,
                               Operation operation) {
  std::vector<int> calls;
  const ParallelCheck check = check_case(one, {}, {}, [&](Trainer& trainer) {
    dist::World& world = trainer.parallel().world();
    if (world.rank() == 0)
      calls.push_back(static_cast<int>(world.traffic().of(axis, operation).calls));
  });
  INFO(one.settings << "\n" << check.words());
  CHECK(check.passed);
  REQUIRE(calls.size() == 1 + kLaterSteps);
  return calls;
}

}  // namespace

TEST_CASE("check parallel: what goes wrong from the second step on is noticed") {
  const Operation gather = Operation::all_gather;
  struct PlantedInStep {
    const char* what;
    std::string settings, axis;
    Operation operation;
    Fault::Kind kind;
    std::vector<std::string> named;
  };
  for (const PlantedInStep& planted : std::vector<PlantedInStep>{
           {"gathered weights that are not dropped after the update",
            "model: {num_layers: 3}\nparallel: {tp: 2, shard: full, reshard: false}\n"
            "data: {packs: 4, micro_packs: 1}",
            "cp+shard",
            gather,
            Fault::remembers,
            {"loss of step 3", "loss of step 4", "update of steps 2 to 4"}},
           {"gradients that are not zeroed",
            "data: {packs: 2}",
            "tp+cp+dp",
            Operation::all_reduce,
            Fault::adds,
            {"gradient norm of step 3", "update of steps 2 to 4"}}}) {
    const ParallelCase one{"dit", planted.settings.find("tp: 2") == std::string::npos ? 2 : 4,
                           planted.settings};
    const std::vector<int> calls = calls_by_step(one, planted.axis, planted.operation);
    REQUIRE(calls[2] > calls[1]);
    const Fault fault{planted.axis, planted.operation, planted.kind, calls[1], calls[2] - calls[1]};
    const ParallelCheck check = check_case(
        one, [&](dist::World& world) { return std::make_unique<FaultyWorld>(world, fault); });
    INFO(planted.what << "\n" << check.words());
    CHECK_FALSE(check.passed);
    const std::vector<std::string> faults = faults_of(check);
    for (const std::string& name : planted.named)
      CHECK(std::ranges::count(faults, name) == 1);
    // Until then all is good.
    CHECK_FALSE(names_a_parameter(check));
    for (const char* name : {"loss", "gradient norm", "update", "loss of step 2"})
      CHECK(std::ranges::count(faults, name) == 0);
  }
}

TEST_CASE(
    "check parallel: moments of one norm that begin anew each step are noticed, by its name") {
  // On one rank, whose moments are as they were: of few elements among many.
  const std::string norm = "transformer_blocks.0.attn1.norm_q.weight";
  const ParallelCheck check =
      check_case({"dit", 2, "parallel: {tp: 2}"}, {}, {}, [&](Trainer& trainer) {
        const nn::ParameterList& states = trainer.optimizer().parameters();
        for (std::size_t i = 0; i < states.size(); ++i)
          if (states[i]->name == norm) {
            const Tensor& v = trainer.optimizer().state("adam_v").tensors[i];
            copy(Tensor::zeros(v.shape(), v.dtype()), v);
          }
      });
  INFO(check.words());
  CHECK_FALSE(check.passed);
  const auto update =
      std::ranges::find(check.values, "update of steps 2 to 4", &ComparedValue::name);
  REQUIRE(update != check.values.end());
  CHECK(update->fault == "differs, most in '" + norm + "'");
  CHECK_FALSE(names_a_parameter(check));
}

TEST_CASE("check parallel: an average that takes the weights' place without others is noticed") {
  const ParallelCase one{"dit", 2, "parallel: {shard: optimizer}"};
  const std::vector<int> calls = calls_by_step(one, "tp+cp+shard", Operation::all_gather);
  const Fault fault{"tp+cp+shard", Operation::all_gather, Fault::remembers, calls.back(),
                    calls[2] - calls[1]};
  const ParallelCheck check = check_case(
      one, [&](dist::World& world) { return std::make_unique<FaultyWorld>(world, fault); });
  INFO(check.words());
  CHECK_FALSE(check.passed);
  CHECK(faults_of(check) == std::vector<std::string>{"validation"});
}

TEST_CASE("check parallel: a gathered matrix that one rank has otherwise after the update") {
  // Only what is gathered for the comparison itself, after the last step.
  const ParallelCase one{"dit", 4, "model: {num_layers: 3}\nparallel: {tp: 2, shard: full}"};
  const std::vector<int> calls = calls_by_step(one, "cp+shard", Operation::all_gather);
  const Fault fault{"cp+shard", Operation::all_gather, Fault::strays, calls.back()};
  const ParallelCheck check = check_case(
      one, [&](dist::World& world) { return std::make_unique<FaultyWorld>(world, fault); });
  INFO(check.words());
  CHECK_FALSE(check.passed);
  const auto update =
      std::ranges::find(check.values, "update of steps 2 to 4", &ComparedValue::name);
  REQUIRE(update != check.values.end());
  CHECK(update->fault.find("has another weight than rank") != std::string::npos);
}

TEST_CASE("check parallel: a loss that is counted wrongly is noticed") {
  const std::string stages = "parallel: {pp: 2}\nmodel: {num_layers: 2}\ndata: {micro_packs: 1}";
  struct PlantedInLoss {
    const char* what;
    std::function<void(std::span<double>, std::span<double>)> act;
    std::vector<std::string> named;
  };
  const auto twice = [](std::span<double> losses, std::span<double> /*elements*/) {
    for (double& loss : losses)
      loss *= 2;
  };
  // Of two microbatches of as many elements.
  const auto of_one = [](std::span<double> /*losses*/, std::span<double> elements) {
    for (double& count : elements)
      count /= 2;
  };
  for (const PlantedInLoss& planted : std::vector<PlantedInLoss>{
           {"the head is counted twice", twice, {"loss"}},
           {"the loss is divided by a microbatch's count", of_one, {"loss", "gradient norm"}}}) {
    const ParallelCheck check =
        check_case({"dit", 2, stages, Samples::one_a_pack}, [&](dist::World& world) {
          Fault fault;
          fault.of_loss = planted.act;
          return std::make_unique<FaultyWorld>(world, fault);
        });
    INFO(planted.what << "\n" << check.words());
    CHECK_FALSE(check.passed);
    for (const ComparedValue& value : check.values) {
      if (value.name.find(" of step") != std::string::npos) continue;  // follow from the first
      if (value.name != "validation")
        CHECK(value.good() == (std::ranges::count(planted.named, value.name) == 0));
    }
  }
}

TEST_CASE("a validation with an average of stale shards is noticed") {
  const ParallelCase one{"dit", 2,
                         "parallel: {shard: optimizer}\nema: {mode: decay}\n"
                         "optimizer: {lr: 0.01}\nschedule: {warmup: 0}\n"
                         "validation: {samples: 2}"};
  Recipe recipe = recipe_of(one);
  recipe.ema.mode = "decay";
  const auto data = samples_of(one);
  data->fit(recipe);
  std::int64_t calls = 0;  // until the average takes the weights' place
  const auto validated = [&](int ranks, const Fault* fault) {
    Recipe own = recipe;
    if (ranks == 1) own.parallel = {};
    double loss = 0;
    dist::thread_worlds(ranks, [&](dist::World& world) {
      omp_set_num_threads(1);
      const auto faulty = fault != nullptr ? std::make_unique<FaultyWorld>(world, *fault) : nullptr;
      Trainer trainer(own, *data, faulty ? *faulty : world);
      for (int i = 0; i < 3; ++i)
        trainer.train_step();
      if (world.rank() == 0 && fault == nullptr && ranks > 1)
        calls = world.traffic().of("tp+cp+shard", Operation::all_gather).calls;
      trainer.swap_ema();
      Validation validation(own, *data, "train");
      const Json record = validation.run(trainer.objective(), trainer.parallel());
      if (world.rank() == 0) loss = record["val_loss"].get<double>();
    });
    return loss;
  };
  const double expected = validated(1, nullptr);
  CHECK(validated(2, nullptr) == Approx(expected).epsilon(1e-6));
  REQUIRE(calls > 0);
  const Fault stale{"tp+cp+shard", Operation::all_gather, Fault::skips, static_cast<int>(calls)};
  CHECK(std::abs(validated(2, &stale) / expected - 1) > 1e-3);
}
