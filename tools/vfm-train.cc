// vfm-train: latents or clips in, a trained video model or tokenizer out.
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "dist/launch.h"
#include "io/atomic_file.h"
#include "io/file_cache.h"
#include "ops/gpu_options.h"
#include "train_options.h"
#include "verbs.h"

namespace {

using namespace vfm;

class TrainTool : public cli::Tool {
 public:
  std::string name() const override { return "vfm-train"; }
  std::string description() const override {
    return "Trains a video model or tokenizer; resumes a run.";
  }
  std::string examples() const override {
    return "vfm-train recipe.yaml train.steps=2000 --data latents -o run\n"
           "vfm-train recipe.yaml lora.rank=16 --init cosmos --data latents -o adapters\n"
           "mpirun -np 8 vfm-train recipe.yaml parallel.tp=2 --data latents -o run";
  }
  std::string version_details() const override {
    return (dist::has_mpi() ? "MPI: yes\n" : "MPI: no\n") + ops::gpu_versions();
  }

  void add_options(cli::Options& options) override {
    training_.add_recipe(options);
    options.group("Output");
    options.add("-o,--output", training_.run.out, "DIR", "the run: checkpoints and logs")
        .required()
        .shown("")
        .check(cli::not_empty)
        .check(cli::not_file)
        .everyday()
        .manual(
            "The folder of the run. A missing folder is created. Only one program at a time can "
            "use the folder. Files that *vfm-train* did not write are never touched.");
    options.flag("--force", training_.run.force, "start over, replacing the run in DIR")
        .everyday()
        .manual("Start over: remove the checkpoints and logs of an earlier run in the folder.");
    report_.add(options, "write a page with the curves of the run when it ends");
    options.row("--report")
        .manual(
            "When the run ends, write an HTML page with curves, rates, stages and the recipe. The "
            "page for a tokenizer also has up to eight clips, original and decoded.");
    training_.add_data(options);
    options.add("--cache", cache_, "DIR:SIZE", "keep copies of data in a bucket on a local disk")
        .check(cli::not_empty)
        .shown("")
        .manual(
            "Keep copies of what is read from a bucket in the folder _DIR_ of a local disk, up to "
            "_SIZE_ bytes, such as _/scratch/vfm:200GB_. All processes of a machine share them, "
            "and the least recently used ones are removed. This option replaces *VFM_CACHE*. See "
            "*vfm-storage*(7).");
    options
        .add("--skip-samples", training_.run.skip_samples, "FILE",
             "leave out the samples whose keys are in this file")
        .check(cli::not_empty)
        .shown("")
        .manual(
            "Leave out these samples. A line of _FILE_ is a key, or a record of _errors.jsonl_. "
            "The other samples keep their places in packs. The run stores the keys, and leaves "
            "the samples out when it is resumed, also without this option. Another file then "
            "replaces the keys, and a message says so. A new stage needs the option again.");
    training_.add_beginning(options, true);
    ranks_.add(options);
    ranks_.add_graphs(options);
  }

  bool writes_manifest(const cli::Launch& launch) const override { return launch.rank == 0; }
  bool long_running() const override { return true; }
  bool ranks_are_one() const override { return true; }
  void check() override {
    if (!cache_.empty()) io::set_cache(cache_);
    training_.check();
    if (training_.run.earlier.empty()) training_.need_recipe();
  }

  long run(cli::Context& context) override {
    training_.run.report = report_.path;
    return dist::with_world(context.launch.ranks, [&](dist::World& world) -> long {
      prepare(training_, ranks_, context, world);
      // All ranks wait for the one that makes an index of the data.
      const io::QuietWaits quiet(world.rank() > 0);
      return train::run(training_.run, world, context.manifest, context.progress);
    });
  }

 private:
  TrainingOptions training_{true};
  RankOptions ranks_{true};
  cli::ReportOptions report_;
  std::string cache_;
};

}  // namespace

int main(int argc, char** argv) {
  return vfm::cli::run(argc, argv,
                       {{"", vfm::cli::make<TrainTool>},
                        {"check", make_train_check},
                        {"cost", make_train_cost},
                        {"plan", make_train_plan},
                        {"calibrate", make_train_calibrate},
                        {"export", make_train_export},
                        {"recipe", make_train_recipe},
                        {"why", make_train_why}});
}
