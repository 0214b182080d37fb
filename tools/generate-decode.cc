// vfm-generate decode: latents in, clips out.
// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>

#include "cli/options.h"
#include "cli/runner.h"
#include "device_engines.h"
#include "dist/launch.h"
#include "dist/together.h"
#include "generate/decode/decode_latents.h"
#include "generate_options.h"
#include "media/version.h"
#include "ops/gpu_options.h"
#include "share/slots.h"
#include "verbs.h"

namespace {

class GenerateDecodeTool : public vfm::cli::Tool {
 public:
  std::string name() const override { return "vfm-generate"; }
  std::string description() const override { return "Decodes latents into clips."; }
  std::string examples() const override {
    return "vfm-generate decode -o videos latents/*.latents.json\n"
           "vfm-generate --model run --latents-only -o latents <prompts | vfm-generate decode -o "
           "videos\n"
           "vfm-generate decode --model moved --encoder ffv1 -o videos <latents.jsonl";
  }

  std::string version_details() const override { return vfm::media::ffmpeg_version(); }

  void add_options(vfm::cli::Options& options) override {
    input_.add(
        options, "LATENTS",
        "files of latents, or '-' for their records or names on standard input (the default)");
    options.group("Model");
    options.add("-m,--model", job_.model, "DIR", "the model, if its folder has moved")
        .check(vfm::cli::not_empty)
        .shown("")
        .everyday()
        .manual(
            "The folder of the model whose tokenizer decodes. Default: the model that the records "
            "name.");
    tokenizer_.add_folder(options);
    options.row("--tokenizer").everyday();
    options.group("Output");
    files_.add(options, "as in the record", "as in the record");
    options.row("--encoder").everyday();
    options.group("Computing");
    tokenizer_.device.add(options).everyday();
    jobs_.add(options);
    tokenizer_.add_computing(options);
    options.row("--compute").everyday();
    options.row("--tokenizer-memory").everyday();
    compute_.add(options);
  }

  bool ranks_are_one() const override { return true; }

  bool writes_manifest(const vfm::cli::Launch& launch) const override {
    return launch.rank == 0 && !files_.stream();
  }

  long run(vfm::cli::Context& context) override {
    return vfm::dist::with_world(context.launch.ranks, [&](vfm::dist::World& world) {
      std::unique_ptr<vfm::share::Slots> slots;
      on_all_ranks(world, [&] { slots = prepare(context); });  // reports an error of all ranks once
      return vfm::generate::decode_latents(job_, world, *slots, context.progress, context.manifest);
    });
  }

 private:
  /// Prepares one rank, before any work.
  std::unique_ptr<vfm::share::Slots> prepare(const vfm::cli::Context& context) {
    const vfm::cli::Launch& launch = context.launch;
    files_.check(launch);
    job_.inputs = input_.resolved();
    job_.tokenizer = tokenizer_.tokenizer;
    job_.output = files_.output.directory;
    job_.force = files_.output.force;
    job_.encoder = files_.encoder;
    job_.quality = files_.quality;
    job_.compute = tokenizer_.compute();
    job_.tokenizer_memory = tokenizer_.memory;
    job_.device = tokenizer_.device_of(launch);
    vfm::ops::set_gpu_options(job_.device, compute_.deterministic, compute_.attention,
                              context.cache);
    if (launch.ranks == 1) engines_.encode(job_.encoder);
    const int threads =
        launch.ranks > 1 ? vfm::dist::threads_per_rank(jobs_.jobs, launch.ranks, launch.local_ranks)
                         : 0;
    return std::unique_ptr<vfm::share::Slots>(new vfm::share::Slots(context.slots(jobs_, threads)));
  }

  vfm::generate::DecodeJob job_;
  vfm::cli::InputOptions input_;
  TokenizerOptions tokenizer_;
  ClipFileOptions files_;
  vfm::cli::JobOptions jobs_;
  vfm::cli::ComputeOptions compute_;
  vfm::cli::DeviceEngines engines_{tokenizer_.device, jobs_, "vfm-generate"};
};

}  // namespace

std::unique_ptr<vfm::cli::Tool> make_generate_decode() {
  return std::make_unique<GenerateDecodeTool>();
}
