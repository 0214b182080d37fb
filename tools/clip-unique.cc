// vfm-clip unique: prints the sources that show what no other one shows.
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "cli/options.h"
#include "clip/clip.h"
#include "device_engines.h"
#include "media/isolated.h"
#include "verbs.h"

namespace {

class ClipUniqueTool : public vfm::cli::Tool {
 public:
  std::string name() const override { return "vfm-clip"; }
  std::string description() const override { return "Prints the videos without duplicates."; }
  std::string examples() const override {
    return "find raw -name '*.mp4' | vfm-clip unique -o signatures | vfm-clip -o clips";
  }

  void add_options(vfm::cli::Options& options) override {
    options.group("Input and output");
    input_.add(options, "VIDEO", "videos, pictures or lists of them (default: '-')");
    output_.add(options, false, "folder for signatures and lists");
    options.row("--force").manual("Decode all sources again, also those whose signature is there.");
    options.add("--covered", options_.unique_share, "PART", "how much of a video another must show")
        .in(0.05, 1)
        .everyday()
        .manual(
            "Leave out a source if another source that stays shows at least this part of it: 0.05 "
            "to 1.");
    options
        .add("--stream", options_.recipe.stream, "N", "index of the video stream in the container")
        .check(vfm::cli::not_negative)
        .shown("what players show")
        .manual("The video stream with this index in the container.");
    options.flag("--no-deinterlace", no_deinterlace_, "leave interlaced frames as they are");
    options.group("Work");
    jobs_.add(options);
    hwaccel_.add(options);
    devices_.add(options);
    options.row("--devices").needs(options.row("--hwaccel"));
    input_limits_.add(options);
    input_limits_.add_isolation(options);
  }

  void check() override {
    if (output_.directory.empty()) vfm::fail_usage("name the output folder with -o DIR");
    input_limits_.check_isolation(hwaccel_);
    input_limits_.apply();  // FFmpeg takes them when it is first used
    options_.recipe.deinterlace = !no_deinterlace_;
    devices_.cards();
  }

  int fork_helper() override { return vfm::media::fork_isolation(input_limits_.limits.isolate); }
  int serve_isolated(int channel) override { return vfm::media::serve_isolated(channel); }

  long run(vfm::cli::Context& context) override {
    vfm::media::begin_isolation();
    options_.inputs = input_.resolved();
    options_.directory = output_.directory;
    options_.force = output_.force;
    options_.hardware = engines_.decoder(hwaccel_);
    vfm::Slots slots = context.slots(jobs_);
    return vfm::clip::find_unique(options_, slots, context.progress, context.manifest);
  }

 private:
  vfm::cli::InputOptions input_;
  vfm::cli::OutputOptions output_;
  vfm::cli::JobOptions jobs_;
  vfm::cli::HwaccelOptions hwaccel_;
  vfm::cli::InputLimitOptions input_limits_;
  vfm::cli::DevicesOptions devices_;
  vfm::cli::DeviceEngines engines_{devices_, jobs_, "vfm-clip"};
  bool no_deinterlace_ = false;
  vfm::clip::ClipOptions options_;
};

}  // namespace

std::unique_ptr<vfm::cli::Tool> make_clip_unique() {
  return std::make_unique<ClipUniqueTool>();
}
