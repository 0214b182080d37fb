// Ranks that should have the same weights and state are compared: one bit that differs on one rank
// is found, and told with the rank, its host and the parameter; what is right is not.
// SPDX-License-Identifier: Apache-2.0
#include "train/state/replicas.h"

#include <omp.h>

#include <catch2/catch.hpp>
#include <functional>

#include "base/error.h"
#include "parallel_cases.h"
#include "train/step/trainer.h"

using namespace vfm;
using namespace vfm::train;

namespace {

using Change = std::function<void(Trainer&, int rank)>;

/// What a comparison after two steps says; "": all are the same.
std::string compared(const ParallelCase& one, const Change& change = {}) {
  Recipe recipe = recipe_of(one);
  recipe.ema.mode = "decay";
  const auto data = samples_of(one);
  data->fit(recipe);
  try {
    dist::thread_worlds(one.ranks, [&](dist::World& world) {
      omp_set_num_threads(1);
      Trainer trainer(recipe, *data, world);
      for (const nn::Parameter* parameter : trainer.objective().frozen())
        parameter->write(Tensor::zeros(parameter->shape()));  // in place of a model's
      for (int step = 0; step < 2; ++step)
        trainer.train_step();
      if (change) change(trainer, world.rank());
      trainer.compare_replicas();
    });
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

void flip(const Tensor& tensor, std::size_t byte = 0) {
  tensor.data<unsigned char>()[byte] ^= 1;
}

nn::Parameter& first_part(const nn::ParameterList& parameters) {
  for (nn::Parameter* parameter : parameters)
    if (!parameter->whole() && parameter->here()) return *parameter;
  throw Error("no parameter is cut");
}

}  // namespace

TEST_CASE("replicas: what ranks of any layout compute alike is the same") {
  for (const ParallelCase& one : std::vector<ParallelCase>{
           {"dit", 1, ""},
           {"dit", 3, "optimizer: {moments: 8bit}"},
           {"dit", 4, "parallel: {tp: 2, cp: 2, cp_kind: gather}\nmodel: {compute: bf16}"},
           {"dit", 4, "parallel: {tp: 2}", Samples::mixed, 2},
           {"dit", 2, "parallel: {cp: 2, cp_kind: gather}\noptimizer: {kind: muon}"},
           {"dit", 4, "parallel: {pp: 2}\nmodel: {num_layers: 2}"},
           {"dit", 4, "parallel: {shard: optimizer, replicate: 2}\nmodel: {compute: bf16}"},
           {"dit", 4, "parallel: {shard: full, replicate: 2}\noptimizer: {moments: 8bit}"},
           {"dit", 8,
            "parallel: {pp: 2, shard: full, replicate: 2, tp: 2}\nmodel: {num_layers: 2}"}}) {
    INFO(one.ranks << " ranks, " << one.settings);
    CHECK(compared(one) == "");
  }
}

TEST_CASE("replicas: one bit of one rank is found, with the rank, its host and the parameter") {
  std::string name;
  const auto weight_of = [&](int which) {
    return [&name, which](Trainer& trainer, int rank) {
      if (rank != which) return;
      const nn::Parameter& parameter = *trainer.objective().parameters()[3];
      name = parameter.name;
      flip(parameter.value, parameter.value.bytes() - 1);
    };
  };
  const ParallelCase three = {"dit", 3, ""};
  for (const int rank : {0, 2}) {
    const std::string words = compared(three, weight_of(rank));
    CHECK(
        words.starts_with(fmt::format("rank {0} on host thread {0} has another '{1}' than rank "
                                      "{2} on host thread {2} that should have the same",
                                      rank, name, rank == 0 ? 1 : 0)));
  }
  // A moment, and the average.
  CHECK(compared(three, [](Trainer& trainer, int rank) {
          if (rank == 1) flip(trainer.optimizer().state("adam_v").tensors[5]);
        }).starts_with("rank 1 on host thread 1 has another '"));
  CHECK(compared(three, [](Trainer& trainer, int rank) {
          if (rank == 1) flip(trainer.optimizer().ema()[5]);
        }).starts_with("rank 1 on host thread 1 has another '"));
  // Of two nobody knows which is wrong.
  CHECK(compared({"dit", 2, ""}, weight_of(1))
            .starts_with(fmt::format("rank 0 on host thread 0 and rank 1 on host thread 1 have "
                                     "different '{}', and should have the same",
                                     name)));
}

TEST_CASE("replicas: parts are compared with the same parts, and a shared state with its copies") {
  CHECK(compared({"dit", 6, "parallel: {tp: 2}\ndata: {packs: 3}"}, [](Trainer& trainer, int rank) {
          if (rank == 3) flip(first_part(trainer.objective().parameters()).value);
        }).starts_with("rank 3 on host thread 3 has another '"));
  const ParallelCase shared = {"dit", 6, "parallel: {shard: optimizer, replicate: 3}"};
  CHECK(compared(shared, [](Trainer& trainer, int rank) {
          if (rank == 4) flip(trainer.optimizer().state("adam_m").tensors[5]);
        }).starts_with("rank 4 on host thread 4 has another '"));
  // The weights that are gathered, though the state is right.
  CHECK(compared(shared, [](Trainer& trainer, int rank) {
          if (rank == 5) flip(trainer.objective().parameters()[3]->value);
        }).starts_with("rank 5 on host thread 5 has another '"));
}
