// The changes of shot of each video, and nothing written.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "base/ordered.h"
#include "io/manifest.h"
#include "jobs/clip.h"
#include "jobs/clip_cutter.h"
#include "jobs/clip_source.h"
#include "media/decoder.h"

namespace vfm::jobs {
namespace {

struct ShotList {
  Json record;
  std::vector<std::string> warnings;
};

ShotList shots_of(const std::string& path, const ClipOptions& options, int threads) {
  const ClipRecipe& recipe = options.recipe;
  media::Decoder decoder(
      path, {.stream = recipe.stream, .threads = threads, .hardware = options.hardware});
  curate::ShotDetector detector(recipe.shots);
  curate::FrameFeatures features;
  media::Frame frame;
  RecentTimes times;
  std::int64_t frames = 0;
  Json cuts = Json::array();
  const auto take = [&] {
    for (const curate::ShotChange& change : detector.take())
      if (change.end > 0)
        cuts.push_back(change_json(change, times.of(change.frame), decoder.info().time_base));
  };
  for (; decoder.next(frame); ++frames) {
    curate::compute_features(frame, features);
    times.add(frame.pts);
    detector.push(features);
    take();
  }
  detector.finish();
  take();
  ShotList list;
  list.record = {{"kind", "shots"}, {"path", path}, {"frames", frames}, {"cuts", std::move(cuts)}};
  if (decoder.corrupt() > 0)
    list.warnings.push_back(
        fmt::format("'{}': {} packets or frames are damaged or missing", path, decoder.corrupt()));
  return list;
}

}  // namespace

long list_shots(const ClipOptions& options, Slots& slots, Progress& progress) {
  ClipItems items(options.inputs, 0, false);
  const int threads = decoder_threads(options.inputs, slots.threads());
  const auto work = [&](ClipItem& item) -> ShotList {
    if (item.kind == ClipItem::Kind::passed) return {item.sources[0].record, {}};
    if (item.kind == ClipItem::Kind::bad)
      return {{}, {fmt::format("{}: {}", item.input, item.message)}};
    try {
      return shots_of(item.sources[0].path, options, threads);
    } catch (const Stopped&) {
      throw;
    } catch (const Error& error) {
      return {{}, {error.what()}};
    }
  };
  io::ManifestWriter manifest;
  long failed = 0, done = 0;
  progress.start("videos", 0);
  for_each_ordered<ClipItem, ShotList>(
      slots, [&] { return items.next(); }, work,
      [&](ShotList& list) {
        if (!list.record.is_null()) manifest.write(list.record);
        for (const std::string& warning : list.warnings)
          log_warning("{}", warning);
        failed += list.warnings.empty() ? 0 : 1;
        ++done;
        progress.add();
      });
  if (done == 0) fail("no videos in the input");
  return failed;
}

}  // namespace vfm::jobs
