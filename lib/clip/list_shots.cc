// The changes of shot of each video, and nothing written.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "base/ordered.h"
#include "base/stopwatch.h"
#include "base/units.h"
#include "clip/clip.h"
#include "clip/cutter.h"
#include "clip/recent_times.h"
#include "clip/shot_finder.h"
#include "clip/shot_lists.h"
#include "clip/source.h"
#include "curate/shot_detector.h"
#include "io/file.h"
#include "io/manifest.h"
#include "media/decoder.h"
#include "shard/input_totals.h"

namespace vfm::clip {
namespace {

struct ShotList {
  Json record;
  std::vector<std::string> warnings;
  std::optional<ShotsOfVideo> shots;  // the same, for the other formats
  std::string remark;                 // for -v
};

/// Writes the lists to standard output, each when its video is done.
class ShotPrinter {
 public:
  ShotPrinter(ShotFormat format, io::ManifestWriter& manifest)
      : format_(format), manifest_(manifest) {
    if (format != ShotFormat::json) out_ = io::File(::dup(STDOUT_FILENO), "standard output");
    if (format == ShotFormat::csv) put(shots_csv_header());
    if (format == ShotFormat::edl) put(edl_.header());
  }

  void print(const ShotList& list) {
    if (format_ == ShotFormat::json) {
      if (!list.record.is_null()) manifest_.write(list.record);
    } else if (list.shots) {
      put(format_ == ShotFormat::csv ? shots_csv(*list.shots) : edl_.add(*list.shots));
    }
  }

 private:
  void put(const std::string& text) { out_.write_all(text.data(), text.size()); }

  ShotFormat format_;
  io::ManifestWriter& manifest_;
  io::File out_;
  ShotsEdl edl_;
};

ShotList shots_of(const std::string& path, const ClipOptions& options, int threads,
                  Progress& progress) {
  const Stopwatch watch;
  ItemProgress place(progress, io::base_name(path));
  const ClipRecipe& recipe = options.recipe;
  media::Decoder decoder(path, {.stream = recipe.stream,
                                .threads = threads,
                                .deinterlace = recipe.deinterlace,
                                .hardware = options.hardware});
  ShotFinder finder(options, decoder.info());
  curate::FrameFeatures features;
  media::Frame frame;
  RecentTimes times;
  std::int64_t frames = 0, first = 0, end = 0;  // the latter two in ticks
  Json cuts = Json::array();
  ShotsOfVideo shots{path, decoder.info().frame_rate, {{}}};
  const double base = decoder.info().time_base.value();
  const auto next_shot = [&](std::int64_t frame_number, std::int64_t pts) {
    shots.shots.back().frame_end = frame_number;
    shots.shots.back().end = static_cast<double>(pts - first) * base;
  };
  const auto take = [&] {
    for (const curate::ShotChange& change : finder.take()) {
      if (change.end <= 0) continue;
      const std::int64_t pts = times.of(change.frame);
      cuts.push_back(change_json(change, pts, decoder.info().time_base));
      next_shot(change.frame, pts);
      const Shot& last = shots.shots.back();
      shots.shots.push_back({last.frame_end, 0, last.end, 0});
    }
  };
  go_to_middle(decoder, options.most_seconds);
  const auto enough = [&] {
    return options.most_seconds > 0 &&
           static_cast<double>(end - first) * base >= options.most_seconds;
  };
  for (; !enough() && decoder.next(frame); ++frames) {
    curate::compute_features(frame, features);
    times.add(frame.pts);
    if (frames == 0) first = frame.pts;
    place.at(static_cast<double>(frame.pts - first) * base, decoder.info().duration);
    end = frame.pts + frame.duration;
    finder.push(frame, features);
    take();
  }
  finder.finish();
  take();
  next_shot(frames, end);
  ShotList list;
  list.remark = fmt::format("'{}': {} shots, {} of video in {}", path, shots.shots.size(),
                            format_seconds(shots.shots.back().end), watch.text());
  list.shots = std::move(shots);
  list.record = {{"kind", "shots"}, {"path", path}, {"frames", frames}, {"cuts", std::move(cuts)}};
  if (decoder.corrupt() > 0)
    list.warnings.push_back(
        fmt::format("'{}': {} packets or frames are damaged or missing", path, decoder.corrupt()));
  return list;
}

}  // namespace

long list_shots(const ClipOptions& options, Slots& slots, Progress& progress,
                io::ManifestWriter& manifest) {
  ClipItems items(options.inputs, 0, {});
  const int threads = decoder_threads(options.inputs, slots.threads());
  const auto work = [&](ClipItem& item) -> ShotList {
    if (item.kind == ClipItem::Kind::passed) return {item.sources[0].record, {}, {}, {}};
    if (item.kind == ClipItem::Kind::bad)
      return {{}, {fmt::format("{}: {}", item.input, item.message)}, {}, {}};
    try {
      return shots_of(item.sources[0].path, options, threads, progress);
    } catch (const Error& error) {
      return {{}, {error.what()}, {}, {}};
    }
  };
  ShotPrinter printer(options.shot_format, manifest);
  long failed = 0, done = 0;
  progress.start("videos", shard::count_videos(options.inputs));
  for_each_ordered<ClipItem, ShotList>(
      slots, [&] { return items.next(); }, work,
      [&](ShotList& list) {
        printer.print(list);
        if (!list.remark.empty()) log_info("{}", list.remark);
        for (const std::string& warning : list.warnings)
          log_warning("{}", warning);
        failed += list.warnings.empty() ? 0 : 1;
        ++done;
        progress.add();
      });
  items.streams().check_whole("the shots of what came are listed");
  if (done == 0) fail("no videos in the input");
  return failed;
}

}  // namespace vfm::clip
