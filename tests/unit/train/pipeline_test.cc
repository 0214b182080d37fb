// A training through a pipeline: the bits of one rank, what passes between stages, and what each
// of them has and writes.
// SPDX-License-Identifier: Apache-2.0
#include "train/step/pipeline.h"

#include <omp.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <tuple>

#include "base/json.h"
#include "dist/mesh.h"
#include "dist/threads.h"
#include "ops/pointwise/activations.h"
#include "parallel_cases.h"
#include "saved_state.h"
#include "support/noise.h"
#include "support/parameter_parts.h"
#include "train/cost/memory.h"
#include "train/data/pack_order.h"
#include "train/kind.h"
#include "train/step/chunks.h"
#include "train/step/gradients.h"
#include "train/step/trainer.h"

using namespace vfm;
using namespace vfm::train;

namespace {

struct Made {
  double loss = 0;
  std::map<std::string, Tensor> gradients;  // whole
  std::set<std::string> on_all_stages;
  std::int64_t elements = 0;  // of all ranks
  std::map<int, std::int64_t> sent;
};

/// The loss and gradients of one step, from weights of which none is zero.
Made one_step(const ParallelCase& one) {
  Recipe recipe = recipe_of(one);
  const auto data = samples_of(one);
  data->fit(recipe);
  Made made;
  std::mutex mutex;
  dist::thread_worlds(one.ranks, [&](dist::World& world) {
    omp_set_num_threads(1);
    Trainer trainer(recipe, *data, world);
    write_noise(trainer.objective().parameters());
    world.traffic().reset();
    const double loss = trainer.train_step(false).loss.mean();
    const std::lock_guard lock(mutex);
    made.loss = loss;
    made.sent[world.rank()] =
        static_cast<std::int64_t>(world.traffic().of("pp", dist::Operation::send).bytes);
    for (const nn::Parameter* p : trainer.objective().parameters()) {
      made.elements += p->elements();
      if (p->on_all_stages) made.on_all_stages.insert(p->name);
      if (p->here()) place_gradient(*p, made.gradients[p->name]);
    }
  });
  return made;
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.bytes() == b.bytes() && std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
}

double distance(const Tensor& a, const Tensor& b) {
  double difference = 0, length = 0;
  for (std::int64_t i = 0; i < a.elements(); ++i) {
    const double x = a.data<float>()[i], y = b.data<float>()[i];
    difference += (x - y) * (x - y);
    length += x * x;
  }
  return std::sqrt(difference / length);
}

/// A pass through chunks in which the last rank loses, for one of them, what backward adds to the
/// gradients of what all stages have.
class ForgetfulPass final : public ChunkedPass {
 public:
  ForgetfulPass(std::unique_ptr<ChunkedPass> pass, const nn::ParameterList& parameters, int chunk)
      : pass_(std::move(pass)), parameters_(parameters), chunk_(chunk) {}
  nn::Streams blank(int chunk, Side side) const override { return pass_->blank(chunk, side); }
  nn::Streams forward(int chunk, nn::Streams streams) override {
    return pass_->forward(chunk, std::move(streams));
  }
  void expect_backward(int chunk) override { pass_->expect_backward(chunk); }
  nn::Streams backward(int chunk, nn::Streams gradients) override {
    std::vector<Tensor> before;
    for (const nn::Parameter* p : parameters_)
      before.push_back(p->grad.clone());
    nn::Streams out = pass_->backward(chunk, std::move(gradients));
    for (std::size_t i = 0; i < parameters_.size() && chunk == chunk_; ++i)
      if (parameters_[i]->on_all_stages) copy(before[i], parameters_[i]->grad);
    return out;
  }

 private:
  const std::unique_ptr<ChunkedPass> pass_;
  const nn::ParameterList& parameters_;
  const int chunk_;
};

/// An objective whose passes are such.
class ForgetfulObjective final : public Objective {
 public:
  ForgetfulObjective(const Objective& objective, int chunk)
      : objective_(objective), chunk_(chunk) {}
  const nn::ParameterList& parameters() const override { return objective_.parameters(); }
  Device device() const override { return objective_.device(); }
  Json config() const override { return objective_.config(); }
  std::unique_ptr<Batch> build(std::uint32_t step, std::size_t of_step,
                               const std::vector<PlacedSample>& samples) const override {
    return objective_.build(step, of_step, samples);
  }
  void pass(Batch& batch, bool first, const ops::Tape::Listener& final) const override {
    objective_.pass(batch, first, final);
  }
  std::unique_ptr<ChunkedPass> pass_in_chunks(Batch& batch,
                                              const ops::Tape::Listener& final) const override {
    return std::make_unique<ForgetfulPass>(objective_.pass_in_chunks(batch, final), parameters(),
                                           chunk_);
  }
  std::unique_ptr<Batch> blank(const std::vector<data::Entry>& samples) const override {
    return objective_.blank(samples);
  }
  LossSums loss(const Batch& batch) const override { return objective_.loss(batch); }
  std::vector<std::string> levels() const override { return objective_.levels(); }
  LossSums validate(std::size_t level, const std::vector<CleanSample>& samples) const override {
    return objective_.validate(level, samples);
  }

 private:
  const Objective& objective_;
  const int chunk_;
};

/// The gradients of the first step of a pipeline of two ranks, the last of which forgets; and what
/// all stages have.
std::map<std::string, Tensor> step_that_forgets(const ParallelCase& one, int chunk,
                                                std::set<std::string>& on_all_stages) {
  Recipe recipe = recipe_of(one);
  const auto data = samples_of(one);
  data->fit(recipe);
  std::map<std::string, Tensor> gradients;
  std::mutex mutex;
  dist::thread_worlds(one.ranks, [&](dist::World& world) {
    omp_set_num_threads(1);
    const Parallel parallel(recipe, world);
    const auto objective =
        kind_of(recipe.model.type)
            .make_objective(recipe, nn::Recompute::none, Device::cpu, parallel.network());
    write_noise(objective->parameters());
    const ForgetfulObjective forgetful(*objective, world.rank() == 1 ? chunk : -1);
    PackOrder order(data->size(), data->lengths(recipe.model), recipe.train.seed,
                    recipe.data.pack_options());
    std::size_t of_step = 0;
    std::vector<std::unique_ptr<Batch>> batches;
    std::vector<data::Pack> packs;
    for (int i = 0; i < recipe.data.packs; ++i) {
      packs.push_back(order.next());
      of_step += packs.back().size();
    }
    std::size_t at = 0;
    for (const data::Pack& pack : packs) {
      std::vector<PlacedSample> samples;
      for (const std::size_t sample : pack)
        samples.push_back({data->read(sample, SeenAt{}), at++});
      batches.push_back(objective->build(0, of_step, samples));
    }
    nn::zero_gradients(objective->parameters());
    GradientReducer reducer(parallel.mesh(), objective->parameters(), DType::f32);
    run_pipeline(parallel.mesh(), forgetful, batches,
                 schedule_pipeline({recipe.parallel.pp, recipe.parallel.vpp},
                                   std::vector<MicrobatchCost>(batches.size(), {1, 2})));
    reducer.finish();
    const std::lock_guard lock(mutex);
    for (const nn::Parameter* p : objective->parameters()) {
      if (p->on_all_stages) on_all_stages.insert(p->name);
      if (p->here()) place_gradient(*p, gradients[p->name]);
    }
  });
  return gradients;
}

const std::string kFour =
    "\nmodel: {num_layers: 4}\ndata: {packs: 4, micro_packs: 1}\noptimizer: {clip: 0}";

}  // namespace

TEST_CASE("stages have the bits of one rank, but of what all have") {
  for (const std::string type : {"dit", "stdit", "moviegen"}) {
    const Made alone = one_step({type, 1, kFour, Samples::one_a_pack});
    std::int64_t elements = 0;
    for (const auto& [name, gradient] : alone.gradients)
      elements += gradient.elements();
    for (const auto& [ranks, pipeline] :
         std::vector<std::pair<int, std::string>>{{2, "parallel: {pp: 2}"},
                                                  {4, "parallel: {pp: 4}"},
                                                  {3, "parallel: {pp: 3, stages: [1, 2, 1]}"},
                                                  {2, "parallel: {pp: 2, vpp: 2}"}}) {
      CAPTURE(type, pipeline);
      const Made staged = one_step({type, ranks, pipeline + kFour, Samples::one_a_pack});
      CHECK(staged.loss == alone.loss);
      REQUIRE(staged.gradients.size() == alone.gradients.size());
      CHECK(staged.on_all_stages.size() >= 6);
      std::int64_t of_all = 0;
      for (const auto& [name, gradient] : staged.gradients) {
        CAPTURE(name);
        const bool shared = staged.on_all_stages.contains(name);
        CHECK(shared == !(name.starts_with("transformer_blocks.") ||
                          name.starts_with("norm_out.") || name == "proj_out.weight" ||
                          name == "patch_embed.proj.weight"));
        const Tensor& expected = alone.gradients.at(name);
        if (shared) of_all += gradient.elements();
        if (shared)
          CHECK(distance(expected, gradient) < 1e-5);
        else
          CHECK(same_bits(expected, gradient));
      }
      // No rank has what is another stage's.
      CHECK(staged.elements == elements + (ranks - 1) * of_all);
    }
  }
}

TEST_CASE("stages of a decoder have the bits of one rank") {
  // Two packs, whose gradients have one sum in whatever order they come.
  const std::string two =
      "\nmodel: {num_layers: 4}\ndata: {packs: 2, micro_packs: 1}\noptimizer: {clip: 0}";
  const Made alone = one_step({"autoregressive", 1, two});
  for (const auto& [ranks, pipeline] : std::vector<std::pair<int, std::string>>{
           {2, "parallel: {pp: 2}"}, {2, "parallel: {pp: 2, vpp: 2}"}}) {
    CAPTURE(pipeline);
    const Made staged = one_step({"autoregressive", ranks, pipeline + two});
    CHECK(staged.loss == alone.loss);
    CHECK(staged.on_all_stages.empty());
    REQUIRE(staged.gradients.size() == alone.gradients.size());
    for (const auto& [name, gradient] : staged.gradients) {
      CAPTURE(name);
      CHECK(same_bits(alone.gradients.at(name), gradient));
    }
  }
}

TEST_CASE("stages whose blocks' inputs wait in the host's memory have the same bits") {
  for (const auto& [type, pipeline, recompute] :
       std::vector<std::tuple<std::string, std::string, std::string>>{
           {"dit", "pp: 2", "block"},
           {"stdit", "pp: 2, vpp: 2", "block_but_attention"},
           {"moviegen", "pp: 3, stages: [1, 2, 1]", "block"},
           {"autoregressive", "pp: 2, vpp: 2", "block"}}) {
    CAPTURE(type, pipeline);
    const int ranks = pipeline.starts_with("pp: 3") ? 3 : 2;
    const auto made = [&, type = type, pipeline = pipeline,
                       recompute = recompute](const std::string& offload) {
      return one_step({type, ranks,
                       "parallel: {" + pipeline + "}\nmodel: {num_layers: 4, recompute: " +
                           recompute + offload + "}\ndata: {packs: 4, micro_packs: 1}"});
    };
    const Made kept = made(""), away = made(", offload: true");
    CHECK(kept.loss == away.loss);
    REQUIRE(kept.gradients.size() == away.gradients.size());
    for (const auto& [name, gradient] : away.gradients)
      CHECK(same_bits(kept.gradients.at(name), gradient));
  }
}

TEST_CASE("a chunk whose gradient of what all stages have is lost differs there, and only there") {
  const ParallelCase one{"dit", 2, "parallel: {pp: 2, vpp: 2}" + kFour, Samples::one_a_pack};
  for (const int chunk : {-1, 0, 1}) {  // -1: nothing is lost
    const std::map<std::string, Tensor> expected =
        one_step({"dit", 1, kFour, Samples::one_a_pack}).gradients;
    std::set<std::string> on_all, differ;
    for (const auto& [name, gradient] : step_that_forgets(one, chunk, on_all))
      if (!(distance(expected.at(name), gradient) < 1e-5)) differ.insert(name);
    CAPTURE(chunk);
    CHECK(on_all.size() >= 6);
    CHECK(differ == (chunk < 0 ? std::set<std::string>() : on_all));
  }
}

TEST_CASE("between stages the residual stream passes, and its gradient") {
  // 36 tokens a pack of width 48, f32; each boundary, both ways.
  constexpr std::int64_t kStream = 36 * 48 * 4, kPacks = 4;
  const auto sent = [](int ranks, const std::string& settings) {
    return one_step({"dit", ranks, settings + kFour, Samples::one_a_pack}).sent;
  };
  using Sent = std::map<int, std::int64_t>;
  CHECK(sent(2, "parallel: {pp: 2}") == Sent{{0, kPacks * kStream}, {1, kPacks * kStream}});
  CHECK(sent(4, "parallel: {pp: 4}") == Sent{{0, kPacks * kStream},
                                             {1, 2 * kPacks * kStream},
                                             {2, 2 * kPacks * kStream},
                                             {3, kPacks * kStream}});
  // Three boundaries between two ranks: 0 to 1, 1 to 0, 0 to 1.
  CHECK(sent(2, "parallel: {pp: 2, vpp: 2}") ==
        Sent{{0, 3 * kPacks * kStream}, {1, 3 * kPacks * kStream}});
  // With tp each rank has half of the tokens.
  for (const auto& [rank, bytes] : sent(4, "parallel: {pp: 2, tp: 2}"))
    CHECK(bytes == kPacks * kStream / 2);
}

TEST_CASE("texts reach every stage, latents the first and the last") {
  const ParallelCase four{"dit", 4, "parallel: {pp: 4}" + kFour, Samples::one_a_pack};
  Recipe recipe = recipe_of(four);
  const auto data = samples_of(four);
  data->fit(recipe);
  std::map<int, double> latents, handed_on, others;
  std::mutex mutex;
  dist::thread_worlds(4, [&](dist::World& world) {
    omp_set_num_threads(1);
    Trainer trainer(recipe, *data, world);
    trainer.train_step();
    const std::lock_guard lock(mutex);
    const auto sent = [&](const char* axis, dist::Operation operation) {
      return static_cast<double>(world.traffic().of(axis, operation).bytes);
    };
    latents[world.rank()] = sent("ends", dist::Operation::broadcast);
    handed_on[world.rank()] = sent("tp+cp+pp", dist::Operation::send);
    others[world.rank()] = sent("tp+cp+pp", dist::Operation::broadcast);
  });
  // This step's and the next one's packs, of which each rank reads one: 3 channels of 4x6x6, and 3
  // tokens of 8 numbers. Those between the ends hand their latents to one of these.
  constexpr double kSteps = 2, kLatents = 4.0 * 3 * 4 * 6 * 6, kText = 4.0 * 3 * 8;
  const double one = kSteps * kLatents, none = 0;
  CHECK(latents == std::map<int, double>{{0, 2 * one}, {1, none}, {2, none}, {3, 2 * one}});
  CHECK(handed_on == std::map<int, double>{{0, none}, {1, one}, {2, one}, {3, none}});
  double texts = 0;
  for (const auto& [rank, bytes] : others)
    texts += bytes;
  CHECK(texts == 3 * 4 * kSteps * kText);
}

TEST_CASE("what stages write is one rank's checkpoint, which any layout goes on with",
          "[long][nightly]") {
  const TemporaryFolder folder;
  ParallelCase one{"dit", 1, kFour + "\nema: {mode: decay}\nschedule: {warmup: 1}"};
  const auto data = samples_of(one);
  const auto recipe_with = [&](const std::string& layout) {
    ParallelCase other = one;
    other.settings = layout + one.settings;
    Recipe recipe = recipe_of(other);
    data->fit(recipe);
    return recipe;
  };
  // Trains `steps` from what `from` has, and saves.
  const auto train = [&](int ranks, const std::string& layout, int steps, const std::string& from,
                         const std::string& to) {
    const Recipe recipe = recipe_with(layout);
    dist::thread_worlds(ranks, [&](dist::World& world) {
      omp_set_num_threads(1);
      Trainer trainer(recipe, *data, world);
      if (!from.empty())
        read_checkpoint(world, checkpoint_path(folder / from, 3), trainer.optimizer());
      for (int i = 0; i < steps; ++i)
        trainer.train_step();
      write_checkpoint(trainer.parallel().mesh(), folder / to,
                       {3, Json{{"_class_name", "None"}}, Json{{"step", 3}}, trainer.optimizer()},
                       {20000, 512});
    });
    return files_of(checkpoint_path(folder / to, 3));
  };
  for (const auto& [ranks, layout, steps] :
       std::vector<std::tuple<int, std::string, int>>{{2, "parallel: {pp: 2}", 50},
                                                      {4, "parallel: {pp: 2, tp: 2}", 50},
                                                      {4, "parallel: {pp: 2}", 50},
                                                      {4, "parallel: {pp: 2, shard: optimizer}", 3},
                                                      {6, "parallel: {pp: 2, shard: full}", 3}}) {
    CAPTURE(ranks, layout);
    const auto files = train(ranks, layout, steps, "", "staged");
    CHECK(files.size() > 8);
    CHECK(train(1, "", 0, "staged", "alone") == files);
    CHECK(train(2, "parallel: {tp: 2}", 0, "staged", "heads") == files);
    CHECK(train(3, "parallel: {pp: 3}", 0, "staged", "three") == files);
    CHECK(train(2, "parallel: {pp: 2, vpp: 2}", 0, "alone", "chunks") == files);
    CHECK(train(6, "parallel: {pp: 3, shard: full}", 0, "staged", "shards") == files);
  }
}

TEST_CASE("what all stages have is the same on all of them after fifty steps, and its average",
          "[long][nightly]") {
  ParallelCase one{"moviegen", 4, "parallel: {pp: 4}" + kFour + "\nema: {mode: decay}"};
  Recipe recipe = recipe_of(one);
  const auto data = samples_of(one);
  data->fit(recipe);
  std::map<std::string, std::vector<float>> values;
  std::mutex mutex;
  int compared = 0;
  dist::thread_worlds(4, [&](dist::World& world) {
    omp_set_num_threads(1);
    Trainer trainer(recipe, *data, world);
    for (int i = 0; i < 50; ++i)
      trainer.train_step();
    const std::lock_guard lock(mutex);
    const nn::ParameterList& parameters = trainer.objective().parameters();
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (!parameters[i]->on_all_stages) continue;
      const Tensor weights = parameters[i]->read(), &average = trainer.optimizer().ema()[i];
      std::vector<float> own(weights.floats().begin(), weights.floats().end());
      own.insert(own.end(), average.floats().begin(), average.floats().end());
      const auto [found, fresh] = values.try_emplace(parameters[i]->name, own);
      CHECK(found->second == own);
      compared += fresh ? 0 : 1;
    }
  });
  CHECK(compared >= 3 * 7);
}

TEST_CASE("what blocks of the microbatches under way read waits in the host's memory") {
  const auto need = [](const std::string& pipeline, bool offload) {
    Recipe recipe = recipe_of({"dit", 2,
                               "parallel: {pp: 2" + pipeline + "}\nmodel: {num_layers: 8}\n" +
                                   "data: {packs: 4, micro_packs: 1}",
                               Samples::one_a_pack});
    recipe.model.offload = offload;
    const auto data = samples_of({"dit", 2, "", Samples::one_a_pack});
    data->fit(recipe);
    return memory_of_stages(recipe, 2, nn::Recompute::block, Device::cuda,
                            fullest_pack(recipe, *data));
  };
  constexpr double kStream = 36 * 48 * 4;  // bytes
  // Microbatches, or of several chunks a stage these, times the blocks of each.
  for (const auto& [pipeline, under_way] : std::vector<std::pair<std::string, std::vector<int>>>{
           {"", {2 * 4, 1 * 4}}, {", vpp: 2", {5 * 2, 3 * 2}}}) {
    CAPTURE(pipeline);
    const auto kept = need(pipeline, false), away = need(pipeline, true);
    for (std::size_t stage = 0; stage < 2; ++stage) {
      const double blocks = under_way[stage], least = blocks * kStream;
      CAPTURE(stage, kept[stage].activations, away[stage].activations);
      CHECK(kept[stage].pinned == 0);
      CHECK(away[stage].pinned >= least);
      CHECK(away[stage].pinned <= blocks * (kStream + 512));
      // There remain those of two blocks or three, and of each microbatch hardly anything.
      CHECK(kept[stage].activations - away[stage].activations >= (blocks - 4) * kStream);
    }
  }
}

TEST_CASE("a chunk that hands on its own result gets both gradients of it") {
  // One recomputed block, whose result is the stream and a skip connection.
  struct Forward final : nn::StagedForward {
    Forward(ops::Tape& on, const Tensor& from) : tape(on), x(from) {}
    nn::Streams embed() override { return {x}; }
    nn::Streams blocks(nn::Streams streams, std::size_t, std::size_t) override {
      const auto block = [](ops::Tape& inner, const Tensor& in) {
        return std::vector{ops::silu(inner, in)};
      };
      const Tensor made = tape.checkpoint(streams.front(), {}, block)[0];
      return {made, made};
    }
    Tensor head(const nn::Streams& streams) override { return streams.front(); }
    ops::Tape& tape;
    Tensor x;
  };
  const Shape shape{3, 4};
  const Tensor x = noise_tensor(shape, 1), first = noise_tensor(shape, 2),
               second = noise_tensor(shape, 3), sum = noise_tensor(shape, 2);
  for (std::size_t i = 0; i < sum.floats().size(); ++i)
    sum.floats()[i] += second.floats()[i];
  const Tensor expected = Tensor::zeros(shape), gradient = Tensor::zeros(shape);
  ops::Tape whole;
  whole.watch(x, expected);
  whole.backward(ops::silu(whole, x), sum);
  dist::thread_worlds(2, [&](dist::World& world) {
    const dist::Mesh mesh(world, {.pp = 2});
    if (world.rank() != 0) return;
    const nn::NetworkLayout layout{.pp = &mesh.group(dist::Axes::pp), .stages = {1, 1}};
    const auto stages = [&](ops::Tape& tape) {
      tape.watch(x, gradient);
      return std::make_unique<Forward>(tape, x);
    };
    const auto shapes = [&](std::size_t block) {
      return std::vector<Shape>(block == 0 ? 1 : 2, shape);
    };
    NetworkChunks chunks(layout, {stages, {}, shapes, Device::cpu, 2});
    CHECK(chunks.forward(0, {}).size() == 2);
    chunks.backward(0, {first, second});
  });
  CHECK(std::ranges::equal(gradient.floats(), expected.floats()));
}

TEST_CASE("a pipeline's memory is that of its stages") {
  const ParallelCase one{"dit", 2, "parallel: {pp: 2, stages: [3, 1]}" + kFour};
  Recipe recipe = recipe_of(one);
  const auto data = samples_of(one);
  data->fit(recipe);
  const auto need =
      memory_of_stages(recipe, 2, nn::Recompute::none, Device::cpu, fullest_pack(recipe, *data));
  REQUIRE(need.size() == 2);
  std::vector<double> weights(2);
  dist::thread_worlds(2, [&](dist::World& world) {
    Trainer trainer(recipe, *data, world);
    weights[static_cast<std::size_t>(world.rank())] =
        4 * static_cast<double>(nn::element_count(trainer.objective().parameters()));
  });
  CHECK(need[0].weights == weights[0]);
  CHECK(need[1].weights == weights[1]);
  CHECK(need[0].weights > 2 * need[1].weights);
  CHECK(need[0].activations > need[1].activations);
  CHECK(memory_need(recipe, 2, nn::Recompute::none, Device::cpu, {}).weights == weights[0]);
}
