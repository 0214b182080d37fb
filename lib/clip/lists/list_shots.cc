// SPDX-License-Identifier: Apache-2.0
#include "clip/lists/list_shots.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/held_bytes.h"
#include "base/json.h"
#include "base/log.h"
#include "base/rounding.h"
#include "base/stopwatch.h"
#include "base/units.h"
#include "clip/cut/cutter.h"
#include "clip/cut/recent_times.h"
#include "clip/cut/shot_finder.h"
#include "clip/lists/explanation.h"
#include "clip/lists/shot_lists.h"
#include "clip/source.h"
#include "curate/shots/shot_detector.h"
#include "io/file.h"
#include "io/manifest.h"
#include "media/decode/decoder.h"
#include "shard/input_totals.h"
#include "share/ordered.h"

namespace vfm::clip {
namespace {

struct ShotList {
  std::vector<Json> records;
  std::vector<std::string> warnings;
  std::optional<ShotsOfVideo> shots;  // the same shots, for other formats than JSON
  std::string remark;                 // message for -v
  std::optional<ExplainedVideo> explained;
};

std::size_t list_weight(const ShotList& list) {
  std::size_t bytes = held_bytes(list.records) + held_bytes(list.warnings) + list.remark.size();
  if (list.shots) bytes += list.shots->shots.size() * sizeof(Shot);
  if (!list.explained) return bytes;
  for (const auto* figures : {&list.explained->found, &list.explained->near})
    for (const report::Figure& figure : *figures)
      bytes += sizeof figure + figure.data_url.size() + figure.caption.size();
  return bytes + list.explained->chart.size();
}

class ShotPrinter {
 public:
  ShotPrinter(const ClipOptions& options, io::ManifestWriter& manifest)
      : format_(options.shot_format), table_(options.print_table), manifest_(manifest) {
    const ShotFormat format = format_;
    if (format != ShotFormat::json) out_ = io::File(::dup(STDOUT_FILENO), "standard output");
    if (format == ShotFormat::csv) put(shots_csv_header());
    if (format == ShotFormat::edl) put(edl_.header());
    if (format == ShotFormat::otio) put(timeline_.header());
    if (format == ShotFormat::chapters) put(chapters_.header());
  }

  void print(const ShotList& list) {
    if (format_ == ShotFormat::json && table_) {
      if (list.shots)
        for (const Json& record : list.records)
          table_(shots_table(record));
    } else if (format_ == ShotFormat::json) {
      for (const Json& record : list.records)
        manifest_.write(record);
    } else if (list.shots) {
      put(text_of(*list.shots));
    }
  }

  void finish() {
    if (format_ == ShotFormat::otio) put(timeline_.footer());
  }

 private:
  std::string text_of(const ShotsOfVideo& shots) {
    switch (format_) {
      case ShotFormat::csv:
        return shots_csv(shots);
      case ShotFormat::otio:
        return timeline_.add(shots);
      case ShotFormat::chapters:
        return chapters_.add(shots);
      default:
        return edl_.add(shots);
    }
  }
  void put(const std::string& text) { out_.write_all(text.data(), text.size()); }

  ShotFormat format_;
  std::function<void(const std::string&)> table_;  // null if records are printed
  io::ManifestWriter& manifest_;
  io::File out_;
  ShotsEdl edl_;
  ShotsTimeline timeline_;
  ShotsChapters chapters_;
};

/// The shots of one video at one threshold.
class Found {
 public:
  Found(const std::string& path, const media::StreamInfo& info, const curate::ShotOptions& options,
        const curate::ChangeModel& model, const ClipRecipe& recipe)
      : finder_(options, model, info), shots_{path, info.frame_rate, {{}}, info.time_base} {
    if (options.explain) explanation_.emplace(path, info, options, recipe);
  }

  void push(const media::Frame& frame, const curate::FrameFeatures& features,
            const RecentTimes& times, std::int64_t first) {
    finder_.push(frame, features);
    if (explanation_) explanation_->add(frame, features.picture, finder_);
    take(times, first);
  }

  /// `frames` is the total number of frames. `end` is the end of the last frame in ticks.
  void finish(const RecentTimes& times, std::int64_t first, std::int64_t frames, std::int64_t end) {
    finder_.finish();
    take(times, first);
    end_shot(frames, end - first);
  }

  Json& cuts() { return cuts_; }
  ShotsOfVideo& shots() { return shots_; }
  std::optional<ExplainedVideo> explained() const {
    return explanation_ ? std::optional(explanation_->explained()) : std::nullopt;
  }

 private:
  void end_shot(std::int64_t frame, std::int64_t tick) {
    Shot& shot = shots_.shots.back();
    shot.frame_end = frame;
    shot.tick_end = tick;
    shot.end = static_cast<double>(tick) * shots_.time_base.value();
  }

  void take(const RecentTimes& times, std::int64_t first) {
    for (const curate::ShotChange& change : finder_.take()) {
      if (explanation_) explanation_->found(change);
      if (change.end <= 0) continue;
      const std::int64_t pts = times.of(change.frame);
      cuts_.push_back(change_json(change, pts, shots_.time_base));
      end_shot(change.frame, pts - first);
      Shot next;
      const Shot& last = shots_.shots.back();
      next.frame_begin = last.frame_end;
      next.tick_begin = last.tick_end;
      next.begin = last.end;
      next.start_type = curate::name_of(change.type);
      next.start_score = change.score;
      shots_.shots.push_back(std::move(next));
    }
    if (explanation_) explanation_->settle(finder_);
  }

  ShotFinder finder_;
  std::optional<Explanation> explanation_;
  Json cuts_ = Json::array();
  ShotsOfVideo shots_;
};

/// Returns a model that remembers its last two answers. The finders of all thresholds ask about the
/// same frames. At the end of a video, each finder asks about two windows.
curate::ChangeModel asked_once(const curate::ChangeModel& model) {
  struct Answer {
    std::vector<std::uint8_t> frames;
    std::vector<float> probabilities;
  };
  constexpr std::size_t kAnswers = 2;
  return
      [model, last = std::make_shared<std::deque<Answer>>()](std::span<const std::uint8_t> frames) {
        for (const Answer& answer : *last)
          if (std::equal(frames.begin(), frames.end(), answer.frames.begin(), answer.frames.end()))
            return answer.probabilities;
        if (last->size() == kAnswers) last->pop_front();
        last->push_back({{frames.begin(), frames.end()}, model(frames)});
        return last->back().probabilities;
      };
}

/// Returns a finder for each threshold of --thresholds, or one finder with the recipe's threshold.
std::deque<Found> finders_of(const std::string& path, const media::StreamInfo& info,
                             const ClipOptions& options) {
  std::deque<Found> found;
  curate::ShotOptions one = options.recipe.shots;
  if (options.thresholds.empty()) {
    one.explain = !options.explain.empty();
    found.emplace_back(path, info, one, options.change_model, options.recipe);
    return found;
  }
  const curate::ChangeModel model =
      options.change_model ? asked_once(options.change_model) : curate::ChangeModel();
  for (const double threshold : options.thresholds) {
    one.threshold = threshold;
    found.emplace_back(path, info, one, model, options.recipe);
  }
  return found;
}

/// Only a network and the page of --explain need whole frames.
media::FrameUse use_of_frames(const ClipOptions& options) {
  return options.change_model || !options.explain.empty() ? media::FrameUse::glance
                                                          : media::FrameUse::cells;
}

/// Returns the ticks from the container's start to the first frame, limited for damaged files.
std::int64_t lead_of(const media::StreamInfo& info, std::int64_t first) {
  constexpr double kLongest = 1e6;  // seconds
  const double base = info.time_base.value();
  const double lead = static_cast<double>(first) - info.start / base;
  return std::llround(std::clamp(lead, 0.0, kLongest / base));
}

ShotList shots_of(const std::string& path, const ClipOptions& options, int threads,
                  Progress& progress) {
  const Stopwatch watch;
  ItemProgress place(progress, io::base_name(path));
  media::Decoder decoder(path, {.stream = options.recipe.stream,
                                .threads = threads,
                                .deinterlace = options.recipe.deinterlace,
                                .use = use_of_frames(options),
                                .hardware = options.hardware});
  if (options.shot_format == ShotFormat::edl) ShotsEdl::check_rate(path, decoder.info().frame_rate);
  std::deque<Found> found = finders_of(path, decoder.info(), options);
  curate::FrameFeatures features;
  media::Frame frame;
  RecentTimes times;
  std::int64_t frames = 0, first = 0, end = 0;  // `first` and `end` are in ticks
  const double base = decoder.info().time_base.value();
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
    for (Found& one : found)
      one.push(frame, features, times, first);
  }
  ShotList list;
  for (std::size_t i = 0; i < found.size(); ++i) {
    found[i].finish(times, first, frames, end);
    Json record = {{"kind", "shots"}, {"path", path}};
    if (!options.thresholds.empty()) record["threshold"] = options.thresholds[i];
    record["frames"] = frames;
    record["cuts"] = std::move(found[i].cuts());
    list.records.push_back(std::move(record));
  }
  list.explained = found.front().explained();
  ShotsOfVideo& shots = found.front().shots();
  shots.lead = lead_of(decoder.info(), first);
  list.remark = fmt::format("'{}': {} shots, {} of video in {}", path, shots.shots.size(),
                            format_seconds(shots.shots.back().end), watch.text());
  list.shots = std::move(shots);
  if (decoder.corrupt() > 0)
    list.warnings.push_back(
        fmt::format("'{}': {} packets or frames are damaged or missing", path, decoder.corrupt()));
  return list;
}

constexpr std::size_t kMostThresholds = 100;

/// Parses a number as CLI11 parses --threshold. Returns nullopt unless it is finite and above 0.
std::optional<double> score_of(const std::string& text) {
  char* end = nullptr;
  const auto value = static_cast<double>(std::strtold(text.c_str(), &end));
  const bool all = !text.empty() && *end == '\0';
  return all && std::isfinite(value) && value > 0 ? std::optional(value) : std::nullopt;
}

}  // namespace

std::vector<double> parse_thresholds(const std::string& text) {
  const auto refuse = [&]() {
    fail_usage(
        "--thresholds: cannot read '{}' as scores; write at most {} scores above 0, as 0.3,0.4 or "
        "as "
        "0.2:0.6:0.05 (from, to, step)",
        text, kMostThresholds);
  };
  const char sign = text.find(':') == std::string::npos ? ',' : ':';
  std::vector<double> scores;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(sign, begin), text.size());
    const std::optional<double> score = score_of(text.substr(begin, end - begin));
    if (!score || scores.size() == kMostThresholds) refuse();
    scores.push_back(*score);
    begin = end + 1;
  }
  if (sign == ',') return scores;
  if (scores.size() != 3 || scores[1] < scores[0]) refuse();
  const double from = scores[0], step = scores[2];
  // The tolerance keeps the last score, although steps such as 0.1 are not exact in binary.
  const double count = std::floor((scores[1] - from) / step + 1e-6) + 1;
  if (!(count <= static_cast<double>(kMostThresholds))) refuse();
  scores.clear();
  for (int i = 0; i < static_cast<int>(count); ++i)
    scores.push_back(six_digits(from + i * step));
  if (scores.front() <= 0) refuse();
  return scores;
}

long list_shots(const ClipOptions& options, share::Slots& slots, Progress& progress,
                io::ManifestWriter& manifest) {
  ClipItems items(options.inputs, 0, {});
  const int threads = decoder_threads(options.inputs, slots.threads());
  const auto work = [&](ClipItem& item) -> ShotList {
    if (item.kind == ClipItem::Kind::passed) return {{item.sources[0].record}, {}, {}, {}, {}};
    if (item.kind == ClipItem::Kind::bad)
      return {{}, {fmt::format("{}: {}", item.input, item.message)}, {}, {}, {}};
    try {
      return shots_of(item.sources[0].path, options, threads, progress);
    } catch (const Error& error) {
      return {{}, {error.what()}, {}, {}, {}};
    }
  };
  ShotPrinter printer(options, manifest);
  ExplainPage page;
  long failed = 0, done = 0;
  progress.start("videos", shard::count_videos(options.inputs));
  share::for_each_ordered<ClipItem, ShotList>(
      slots, [&] { return items.next(); }, work,
      [&](ShotList& list) {
        printer.print(list);
        if (list.explained) page.add(std::move(*list.explained));
        if (!list.remark.empty()) log_info("{}", list.remark);
        for (const std::string& warning : list.warnings)
          log_warning("{}", warning);
        failed += list.warnings.empty() ? 0 : 1;
        ++done;
        progress.add();
      },
      list_weight);
  printer.finish();
  if (!options.explain.empty()) page.write(options.explain, items.streams().broken_off());
  items.streams().check_whole("the shots of the videos that came are printed");
  if (done == 0) fail("no videos in the input");
  return failed;
}

}  // namespace vfm::clip
