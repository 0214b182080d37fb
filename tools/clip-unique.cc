// vfm-clip unique: prints the videos without duplicates.
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "cli/options.h"
#include "clip/unique/unique.h"
#include "clip_reading.h"
#include "verbs.h"

namespace {

class ClipUniqueTool : public ClipReadingTool {
 public:
  std::string description() const override { return "Removes duplicates from a list of videos."; }
  std::string examples() const override {
    return "find raw -name '*.mp4' | vfm-clip unique -o signatures | vfm-clip -o clips";
  }

  void add_options(vfm::cli::Options& options) override {
    options.group("Input and output");
    input_.add(options, "VIDEO", "videos, pictures or .jsonl manifests (default: '-')");
    output_.add(options, false, "folder for signatures and lists");
    options.row("--force").manual("Decode all sources again, even if their signature exists.");
    options
        .add("--covered", options_.unique_share, "PART",
             "leave out a video if another shows this part of it")
        .in(0.05, 1)
        .everyday()
        .manual("Leave out a source of which a kept source shows at least this part, 0.05 to 1.");
    options
        .add("--stream", options_.recipe.stream, "N", "index of the video stream in the container")
        .check(vfm::cli::not_negative)
        .shown("the stream that players show")
        .manual("The video stream with this index in the container.");
    options.flag("--no-deinterlace", no_deinterlace_, "leave interlaced frames as they are");
    add_work(options);
  }

  void check() override {
    if (output_.directory.empty()) vfm::fail_usage("name the output folder with -o DIR");
    check_work();
    options_.recipe.deinterlace = !no_deinterlace_;
  }

  long run(vfm::cli::Context& context) override {
    options_.hardware = begin_work();
    options_.inputs = input_.resolved();
    options_.directory = output_.directory;
    options_.force = output_.force;
    vfm::share::Slots slots = context.slots(jobs_);
    return vfm::clip::find_unique(options_, slots, context.progress, context.manifest);
  }

 private:
  vfm::cli::InputOptions input_;
  vfm::cli::OutputOptions output_;
  bool no_deinterlace_ = false;
  vfm::clip::ClipOptions options_;
};

}  // namespace

std::unique_ptr<vfm::cli::Tool> make_clip_unique() {
  return std::make_unique<ClipUniqueTool>();
}
