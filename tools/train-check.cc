// vfm-train check: a layout of ranks, compared with one rank.
// SPDX-License-Identifier: Apache-2.0
#include <omp.h>

#include "base/json.h"
#include "dist/launch.h"
#include "dist/together.h"
#include "io/atomic_file.h"
#include "train/check/check_parallel.h"
#include "train/data/blend.h"
#include "train_options.h"
#include "verbs.h"

namespace {

using namespace vfm;

class TrainCheckTool : public cli::Tool {
 public:
  std::string name() const override { return "vfm-train"; }
  std::string description() const override {
    return "Compares steps on these ranks with one rank.";
  }
  std::string examples() const override {
    return "mpirun -np 2 vfm-train check r.yaml parallel.tp=2 --data latents\n"
           "mpirun -np 8 vfm-train check r.yaml --synthetic 16x32x32";
  }

  void add_options(cli::Options& options) override {
    training_.add_recipe(options);
    training_.add_data(options);
    training_.add_beginning(options, false);
    ranks_.add(options);
    ranks_.add_graphs(options);
  }

  bool writes_manifest(const cli::Launch&) const override { return false; }
  bool ranks_are_one() const override { return true; }
  void check() override {
    training_.check();
    training_.need_recipe();
  }

  /// Returns the number of values that differ from those of one rank.
  long run(cli::Context& context) override {
    return dist::with_world(context.launch.ranks, [&](dist::World& world) -> long {
      prepare(training_, ranks_, context, world);
      // All ranks wait for the one that makes an index of the data.
      const io::QuietWaits quiet(world.rank() > 0);
      const train::RunOptions& run = training_.run;
      omp_set_num_threads(run.threads);
      std::unique_ptr<train::Dataset> data;
      on_all_ranks(world, [&] { data = train::open_data(run); });
      data->settle(world, {});
      const train::ParallelCheck check = train::check_parallel(run, *data, world);
      if (world.rank() == 0) tell(check.to_json(), check.words());
      return check.passed ? 0 : 1;
    });
  }

 private:
  TrainingOptions training_;
  RankOptions ranks_;
};

}  // namespace

std::unique_ptr<cli::Tool> make_train_check() {
  return std::make_unique<TrainCheckTool>();
}
