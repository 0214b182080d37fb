// vfm-train calibrate: this machine's rates, for predictions.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/error.h"
#include "base/json.h"
#include "cli/options.h"
#include "dist/launch.h"
#include "io/atomic_file.h"
#include "io/file.h"
#include "ops/gpu_options.h"
#include "train/calibrate/calibrate.h"
#include "verbs.h"

namespace {

using namespace vfm;

class TrainCalibrateTool : public cli::Tool {
 public:
  std::string name() const override { return "vfm-train"; }
  std::string description() const override {
    return "Measures this machine, and writes a file for --gpu.";
  }
  std::string examples() const override {
    return "vfm-train calibrate here.json\n"
           "mpirun -np 2 vfm-train calibrate two.json --device cpu";
  }

  void add_options(cli::Options& options) override {
    options.add("FILE", file_, "FILE.json", "the file to write, for --gpu of cost and plan")
        .required()
        .shown("")
        .check(cli::not_empty)
        .everyday();
    options.group("Output");
    options.flag("--force", force_, "replace an existing file")
        .everyday()
        .manual("Replace an existing file.");
    options.group("Measuring");
    cli::add_seconds_option(options, "--time", measured_.seconds, "measure for about this time")
        .everyday()
        .manual(
            "Measure for about this time. On a CPU, less than half a minute leaves out the larger "
            "networks, so predictions of large models are worse.");
    device_.add(options).everyday();
    options.add("-j,--jobs", jobs_, "N", "threads of each process")
        .in(1, 4096)
        .shown("processors/processes")
        .everyday()
        .manual("Number of threads of each process.");
  }

  bool writes_manifest(const cli::Launch&) const override { return false; }
  bool ranks_are_one() const override { return true; }
  bool long_running() const override { return true; }
  void check() override {
    if (!force_ && io::file_exists(file_))
      fail_usage("'{}' is there already: --force replaces it", file_);
  }

  long run(cli::Context& context) override {
    const cli::Launch& launch = context.launch;
    measured_.threads = dist::threads_per_rank(jobs_, launch.ranks, launch.local_ranks);
    measured_.local_ranks = std::max(1, launch.local_ranks);
    measured_.device =
        dist::rank_device(device_.device, launch.local_rank, launch.local_ranks, launch.shown_gpu);
    ops::set_gpu_options(measured_.device, false, "auto", context.cache);
    return dist::with_world(launch.ranks, [&](dist::World& world) -> long {
      world.section("step", 600);
      world.use_device(measured_.device, false);
      const Json table = train::calibrate(measured_, world, context.progress);
      if (world.rank() > 0) return 0;
      io::write_file(file_, dump_json_pretty(table));
      cli::say(train::calibration_words(table));
      return 0;
    });
  }

 private:
  std::string file_;
  bool force_ = false;
  int jobs_ = 0;
  cli::DeviceOptions device_;
  train::CalibrateOptions measured_;
};

}  // namespace

std::unique_ptr<cli::Tool> make_train_calibrate() {
  return std::make_unique<TrainCalibrateTool>();
}
