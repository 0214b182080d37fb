// vfm-pack plan: the packs that training would make of latents.
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "base/error.h"
#include "cli/options.h"
#include "pack/plan.h"
#include "verbs.h"

namespace {

vfm::data::Patch parse_patch(const std::string& text) {
  vfm::data::Patch patch;
  int read = 0;
  const int found =
      std::sscanf(text.c_str(), "%5d,%5d,%5d%n", &patch.frames, &patch.height, &patch.width, &read);
  if (found != 3 || read != static_cast<int>(text.size()) || patch.frames < 1 || patch.height < 1 ||
      patch.width < 1)
    vfm::fail("'{}' is not a patch; write frames,height,width as in 1,2,2", text);
  return patch;
}

class PackPlanTool : public vfm::cli::Tool {
 public:
  std::string name() const override { return "vfm-pack"; }
  std::string description() const override {
    return "Prints the packs that training would make of latents.";
  }
  std::string examples() const override {
    return "vfm-pack plan latents\n"
           "vfm-pack plan --tokens 32768 latents\n"
           "vfm-pack plan latents | jq 'select(.kind == \"end\").plan'";
  }

  void add_options(vfm::cli::Options& options) override {
    options.group("Packs");
    options.add("LATENTS", plan_.directory, "DIR", "the folder of latents")
        .required()
        .shown("")
        .check(vfm::cli::not_empty)
        .everyday();
    options.add("--tokens", tokens_, "N", "tokens in a pack")
        .in(1, 1'000'000'000)
        .everyday()
        .manual("Tokens in a pack, as in _data.tokens_ of a recipe.");
    options
        .parsed(
            "--patch", [this](const std::string& text) { plan_.patch = parse_patch(text); },
            "T,H,W", "latent frames, rows and columns in a token")
        .shown("1,2,2")
        .everyday()
        .manual(
            "Latent frames, rows and columns in a token, as in _model.patch_size_ of a "
            "recipe.");
    options.add("--window", plan_.packs.window, "N", "samples to choose from")
        .in(1, 1'000'000'000)
        .everyday()
        .manual("Choose the samples of a pack from _N_ candidates.");
    options.add("--split", plan_.split, "NAME", "plan this split")
        .check(vfm::cli::not_empty)
        .everyday()
        .manual("Plan this split.");
    options.add("--epoch", epoch_, "N", "plan this epoch, from 0")
        .in(0, 4'294'967'295.0)
        .everyday()
        .manual("Plan this epoch. The first is 0.");
    seed_.add(options);
    options.row("--seed").everyday().manual("Seed of the order of samples.");
  }

  bool writes_manifest(const vfm::cli::Launch&) const override {
    return !vfm::cli::stdout_is_terminal();
  }

  long run(vfm::cli::Context& context) override {
    plan_.packs.tokens = tokens_;
    plan_.epoch = static_cast<std::uint32_t>(epoch_);
    plan_.seed = seed_.seed;
    if (vfm::cli::stdout_is_terminal())
      vfm::cli::print(vfm::pack::plan_table(plan_));
    else
      vfm::pack::write_plan(plan_, context.manifest);
    return 0;
  }

 private:
  vfm::pack::PlanOptions plan_;
  vfm::cli::SeedOptions seed_;
  std::uint64_t epoch_ = 0;
  int tokens_ = static_cast<int>(plan_.packs.tokens);
};

}  // namespace

std::unique_ptr<vfm::cli::Tool> make_pack_plan() {
  return std::make_unique<PackPlanTool>();
}
