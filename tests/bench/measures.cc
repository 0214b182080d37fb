// What each measure of vfm-clip costs beside the one decode: the video is decoded once more here,
// with one thread, and the processor time of each step is added up over all of its frames. Prints a
// table in Markdown.
//   measures VIDEO [SECONDS]   SECONDS: of processor time that vfm-clip took, of which shares are
//   told
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <time.h>

#include <cstdlib>
#include <vector>

#include "curate/measures/bars.h"
#include "curate/measures/camera_split.h"
#include "curate/measures/clip_meter.h"
#include "curate/measures/picture_quality.h"
#include "curate/measures/still_overlay.h"
#include "curate/measures/text_edges.h"
#include "curate/shots/frame_features.h"
#include "curate/shots/shot_detector.h"
#include "media/decode/decoder.h"

using namespace vfm;

namespace {

constexpr int kSparse = 8;  // as ClipMeter has it

double processor_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct Step {
  const char* name;
  double seconds = 0;
  long times = 0;

  template <class Work>
  auto time(const Work& work) {
    struct Timer {
      Step& step;
      double begin = processor_seconds();
      ~Timer() { step.seconds += processor_seconds() - begin; }
    };
    ++times;
    const Timer timer{*this};
    return work();
  }
};

/// In the order of the table.
struct Steps {
  Step decode{"decode"}, features{"small picture and its features"};
  Step shots{"shots, with the motion of blocks"}, split{"motion split into camera and objects"};
  Step rows{"sharpness"}, bars{"black bars"};
  Step quality{"focus, exposure, blocks, bands, combing"}, text{"text_area"}, logo{"logo"};
};

void print(const Step& step, long frames, double total) {
  fmt::print("| {} | {} | {:.1f} | {:.2f} |", step.name, step.times,
             step.times > 0 ? 1e6 * step.seconds / static_cast<double>(step.times) : 0,
             step.seconds);
  if (total > 0)
    fmt::print(" {:.1f} % |\n", 100 * step.seconds / total);
  else
    fmt::print(" {:.1f} us a frame |\n", 1e6 * step.seconds / static_cast<double>(frames));
}

void measure(const std::string& path, double total) {
  Steps steps;
  media::Decoder decoder(path, {.threads = 1});
  const media::StreamInfo& info = decoder.info();
  const double aspect = static_cast<double>(info.display_width) / info.display_height;
  curate::ShotDetector detector;
  curate::BarFinder bars;
  curate::StillOverlay overlay;
  curate::ReducedLuma reduced;
  curate::FrameFeatures features;
  media::Frame frame;
  std::vector<std::uint8_t> room;
  double used = 0;  // so that nothing is left out as unused
  long frames = 0;
  for (; steps.decode.time([&] { return decoder.next(frame); }); ++frames) {
    steps.features.time([&] { curate::compute_features(frame, features); });
    steps.shots.time([&] { detector.push(features); });
    used += static_cast<double>(detector.take().size());
    used += steps.split.time(
        [&] { return curate::split_motion(detector.motion(), features.picture, aspect).camera; });
    if (frames % kSparse != 0) continue;
    used += steps.rows.time([&] { return curate::row_sharpness(frame); });
    const curate::LumaPlane plane = curate::luma_plane(frame, room);
    used += steps.quality.time([&] {
      return curate::measure_quality(plane, {0, 0, frame.width, frame.height}).focus;
    });
    steps.bars.time([&] { bars.add(frame); });
    used += steps.text.time([&] {
      curate::reduce_luma(plane, reduced);
      return curate::text_area(reduced);
    });
    steps.logo.time([&] { overlay.add(reduced); });
  }
  fmt::print("| {} frames of {}x{} | times | us each | s | {} |\n|---|---:|---:|---:|---:|\n",
             frames, info.display_width, info.display_height, total > 0 ? "of all" : "by frames");
  for (const Step* step : {&steps.decode, &steps.features, &steps.shots, &steps.split, &steps.rows,
                           &steps.bars, &steps.quality, &steps.text, &steps.logo})
    print(*step, frames, total);
  if (used < 0) fmt::print("{}\n", used);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    fmt::print(stderr, "usage: measures VIDEO [SECONDS]\n");
    return 2;
  }
  measure(argv[1], argc > 2 ? std::strtod(argv[2], nullptr) : 0);
}
