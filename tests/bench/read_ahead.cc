// What part of its time a training waits for samples of a store that stands still now and then.
// Run by read_ahead.sh.
//
//   read_ahead STALL EVERY SECONDS AHEAD...
//
// The store gives samples at once, but for STALL seconds of every EVERY. A training without it says
// how many bytes are used a second; then for each AHEAD, in seconds of that use, it runs SECONDS,
// after the first EVERY, and a line of JSON says what it waited.
// SPDX-License-Identifier: Apache-2.0
#include <omp.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "base/error.h"
#include "base/json.h"
#include "dist/world.h"
#include "train/diffusion/data.h"
#include "train/kind.h"
#include "train/recipe/recipe_file.h"
#include "train/step/trainer.h"

using namespace vfm;
using namespace vfm::train;

namespace {

using Clock = std::chrono::steady_clock;

double now() {
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

/// Samples of one size, that nobody computes: all are the first.
class Store final : public Dataset {
 public:
  Store(double stall, double every) : stall_(stall), every_(every) {
    MadeUpLatents made;
    made.sizes = {{4, 16, 16}};
    made.text_tokens = 16;
    made.text_width = 64;
    data_ = make_up_latents(made);
    first_ = data_->read(0);
  }
  const data::SampleIndex& index() const override { return data_->index(); }
  const Json& info() const override { return data_->info(); }
  void stand_still(bool yes) { stands_still_ = yes; }

 private:
  void fit_model(Recipe& recipe) const override { data_->fit(recipe); }
  CleanSample read_sample(std::size_t, std::optional<SeenAt>) const override {
    const double phase = std::fmod(now() - begin_, every_);
    if (stands_still_ && phase < stall_)
      std::this_thread::sleep_for(std::chrono::duration<double>(stall_ - phase));
    return first_;
  }

  double stall_, every_, begin_ = now();
  std::unique_ptr<Dataset> data_;
  CleanSample first_;
  std::atomic<bool> stands_still_ = false;
};

struct Measured {
  double seconds = 0, waited = 0;
  int steps = 0;
};

/// So many seconds of training, after `before`.
Measured train_for(Trainer& trainer, double before, double seconds) {
  Measured measured;
  for (const double begin = now(); now() - begin < before;)
    trainer.train_step();
  const double begin = now();
  for (; measured.seconds < seconds; measured.seconds = now() - begin) {
    measured.waited += trainer.train_step().data_seconds;
    ++measured.steps;
  }
  return measured;
}

int run(int argc, char** argv) {
  const double stall = std::atof(argv[1]), every = std::atof(argv[2]), seconds = std::atof(argv[3]);
  Store store(stall, every);
  Recipe recipe = make_recipe(
      parse_yaml("model: {num_attention_heads: 4, attention_head_dim: 48, num_layers: 2, "
                 "adaln_lora_dim: 16, max_size: [4, 16, 16]}\n"
                 "data: {tokens: 512, packs: 1}\noptimizer: {lr: 1e-6}\ntrain: {steps: 1000000}\n",
                 "read_ahead"));
  store.fit(recipe);
  const auto world = dist::self_world();
  const double bytes = kind_of(recipe.model.type).sample_bytes(recipe, store.sizes(0));
  double use = 0;  // samples a second
  {
    Trainer trainer(recipe, store, *world);
    const Measured free = train_for(trainer, every / 10, every / 2);
    use = 2 * free.steps / free.seconds;
    std::printf("{\"step_seconds\":%.4f,\"bytes_per_second\":%.0f,\"waited\":%.4f}\n",
                free.seconds / free.steps, use * bytes, free.waited / free.seconds);
  }
  store.stand_still(true);
  for (int i = 4; i < argc; ++i) {
    const double ahead = std::atof(argv[i]);
    recipe.data.ahead = static_cast<std::int64_t>(ahead * use * bytes);
    Trainer trainer(recipe, store, *world);
    const Measured measured = train_for(trainer, every, seconds);
    std::printf("{\"ahead_seconds\":%g,\"ahead_bytes\":%lld,\"steps\":%d,\"waited\":%.4f}\n", ahead,
                static_cast<long long>(recipe.data.ahead), measured.steps,
                measured.waited / measured.seconds);
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  omp_set_num_threads(1);
  try {
    return run(argc, argv);
  } catch (const Error& error) {
    std::fprintf(stderr, "read_ahead: %s\n", error.what());
    return 1;
  }
}
