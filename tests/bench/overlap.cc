// What ranks of MPI wait for each other where messages come late: beside computing, and with all
// operations waited for where they start. Run by overlap.sh, with mpirun.
//
//   overlap LATE_MS STEPS SIZE SETTINGS
//
// SIZE of each sample, frames x height x width; SETTINGS, YAML, in the place of the recipe's own.
// Rank 0 prints one line of JSON: of each way the seconds of a step and those that the slower rank
// waited, by axis and operation, for tensors of kLarge bytes or more: a few numbers of the loss and
// the norm are waited for in both. The fastest step of STEPS, after one that does not count.
// SPDX-License-Identifier: Apache-2.0
#include <omp.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

#include "base/error.h"
#include "base/json.h"
#include "base/stopwatch.h"
#include "dist/world.h"
#include "support/watched_world.h"
#include "train/data/synthetic.h"
#include "train/diffusion/data.h"
#include "train/recipe/recipe_file.h"
#include "train/step/trainer.h"

using namespace vfm;

namespace {

constexpr std::size_t kLarge = 16384;

const char* const kRecipe =
    "model: {in_channels: 16, text_embed_dim: 64, num_attention_heads: 8, attention_head_dim: 64, "
    "num_layers: 8, adaln_lora_dim: 64, max_size: [16, 64, 64], patch_size: [1, 2, 2], recompute: "
    "none}\n"
    "data: {tokens: 256, packs: 4, micro_packs: 1, window: 8}\nema: {mode: off}\n";

train::Recipe recipe_of(const std::string& settings) {
  auto all = train::parse_yaml(kRecipe, "recipe");
  for (const auto& setting : train::parse_yaml(settings, "settings"))
    all.push_back(setting);
  return train::make_recipe(all);
}

/// Seconds between a wait and its end, by axis and operation.
std::map<std::string, double> waited(const Timeline& timeline) {
  std::map<std::string, double> seconds;
  std::map<std::size_t, double> begins;
  for (const Happened& one : timeline.all) {
    if (one.bytes < kLarge || one.axis == "world") continue;
    if (one.what == Happened::awaited) begins[one.number] = one.at;
    if (one.what == Happened::finished)
      seconds[one.axis + " " + std::string(operation_name(one.operation))] +=
          one.at - begins[one.number];
  }
  return seconds;
}

Json measure(dist::World& world, char** argv, bool at_once) {
  const int steps = std::atoi(argv[2]);
  train::Recipe recipe = recipe_of(argv[4]);
  train::MadeUpLatents made;
  made.sizes = train::parse_sizes(argv[3]);
  made.text_tokens = 16;
  made.text_width = 64;
  const auto data = train::make_up_latents(made);
  data->fit(recipe);
  const Stopwatch watch;
  Timeline timeline{[&] { return watch.seconds(); }, at_once};
  WatchedWorld watched(world, timeline);
  train::Trainer trainer(recipe, *data, watched);
  Json best;
  for (int step = 0; step <= steps; ++step) {
    world.barrier();
    timeline.all.clear();
    const double begin = watch.seconds();
    trainer.train_step();
    double seconds = watch.seconds() - begin, all = 0;
    Json by_operation = Json::object();
    for (const auto& [name, one] : waited(timeline)) {
      double most = one;
      for (const std::string& text : world.gather(std::to_string(one)))
        most = std::max(most, std::stod(text));
      by_operation[name] = most;
      all += most;
    }
    if (step > 0 && (best.is_null() || all < best["waited"].get<double>()))
      best = {{"step", seconds}, {"waited", all}, {"by", by_operation}};
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fputs("usage: overlap LATE_MS STEPS SIZE SETTINGS\n", stderr);
    return 2;
  }
  omp_set_num_threads(1);
  const auto world = dist::mpi_world(std::atof(argv[1]) / 1000);
  try {
    const Json beside = measure(*world, argv, false), at_once = measure(*world, argv, true);
    const Json line = {{"late_ms", std::atof(argv[1])}, {"beside", beside}, {"at_once", at_once}};
    if (world->rank() == 0) std::printf("%s\n", line.dump().c_str());
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "overlap: %s\n", error.what());
    world->end_all(1);
  }
}
