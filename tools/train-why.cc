// vfm-train why: what the records of a run that died tell.
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "base/json.h"
#include "cli/options.h"
#include "dist/why.h"
#include "io/folder.h"
#include "verbs.h"

namespace {

using namespace vfm;

class TrainWhyTool : public cli::Tool {
 public:
  std::string name() const override { return "vfm-train"; }
  std::string description() const override { return "Tells why a run on several ranks died."; }
  std::string examples() const override {
    return "vfm-train why run\n"
           "vfm-train why run --json";
  }

  void add_options(cli::Options& options) override {
    options.add("RUN", run_, "RUN", "a run of vfm-train")
        .required()
        .shown("")
        .check(cli::not_empty)
        .everyday();
    options.flag("--json", json_, "print JSON")
        .everyday()
        .manual("Print one JSON object in place of sentences.");
  }

  bool writes_manifest(const cli::Launch&) const override { return false; }
  bool ranks_are_one() const override { return true; }
  void check() override {
    if (!io::is_folder(run_)) fail_usage("'{}' is not a folder; give a run of vfm-train", run_);
  }

  long run(cli::Context& context) override {
    if (context.launch.rank > 0) return 0;
    const Json why = dist::why_it_died(run_);
    std::string text;
    for (const Json& line : why["words"])
      text += line.get<std::string>() + "\n";
    cli::print(json_ ? dump_json(why) + "\n" : text);
    return 0;
  }

 private:
  std::string run_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<cli::Tool> make_train_why() {
  return std::make_unique<TrainWhyTool>();
}
