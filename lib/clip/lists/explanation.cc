// SPDX-License-Identifier: Apache-2.0
#include "clip/lists/explanation.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/counted.h"
#include "base/error.h"
#include "base/json.h"
#include "curate/shots/stitch.h"
#include "media/container/picture_file.h"

namespace vfm::clip {
namespace {

constexpr int kSide = 160;       // pixels of a picture's longer side
constexpr int kBetween = 4;      // pixels between two pictures
constexpr int kPairQuality = 7;  // FFmpeg's qscale
constexpr std::size_t kRing = 2 * curate::kShotLag;
constexpr std::size_t kRemembered = 16;  // changes
constexpr double kNearFrom = 0.25;       // share of the threshold; lower scores are not shown

const char* reason_of(curate::Judgement::Verdict verdict) {
  using Verdict = curate::Judgement::Verdict;
  switch (verdict) {
    case Verdict::below:
      return "below the threshold";
    case Verdict::alike:
      return "hardly another picture";
    case Verdict::interrupts:
      return "interrupts a scene that is back within 8 frames";
    default:
      return "the scene is back little by little, or another change has it";
  }
}

/// Returns true if a decision at `frame` is about the change.
bool is_in(std::int64_t frame, const curate::ShotChange& change) {
  return frame >= change.end - 1 && frame <= change.begin + 1;
}

void sort_by_rank(std::vector<Decision>& decisions, bool greatest_first) {
  std::stable_sort(decisions.begin(), decisions.end(), [&](const Decision& a, const Decision& b) {
    return greatest_first ? a.rank > b.rank : a.rank < b.rank;
  });
}

std::vector<report::Figure> figures_of(std::vector<Decision> decisions) {
  std::sort(decisions.begin(), decisions.end(),
            [](const Decision& a, const Decision& b) { return a.frame < b.frame; });
  std::vector<report::Figure> figures;
  for (const Decision& one : decisions)
    figures.push_back({report::data_url("image/jpeg", one.jpeg), one.caption});
  return figures;
}

}  // namespace

void Peaks::add(double x, double y) {
  if (in_last_ == 0 && x_.size() == kMost) {
    for (std::size_t i = 0; i < kMost / 2; ++i) {
      const std::size_t of = y_[2 * i] >= y_[2 * i + 1] ? 2 * i : 2 * i + 1;
      x_[i] = x_[of];
      y_[i] = y_[of];
    }
    x_.resize(kMost / 2);
    y_.resize(kMost / 2);
    part_ *= 2;
  }
  if (in_last_ == 0) {
    x_.push_back(x);
    y_.push_back(y);
  } else if (y > y_.back()) {
    x_.back() = x;
    y_.back() = y;
  }
  in_last_ = (in_last_ + 1) % part_;
}

Explanation::Explanation(std::string path, const media::StreamInfo& info,
                         const curate::ShotOptions& options, const ClipRecipe& recipe)
    : path_(std::move(path)),
      info_(info),
      options_(options),
      threshold_(options.used_threshold()),
      ring_(kRing),
      stitch_threshold_(recipe.stitch_threshold),
      sound_(path_, recipe, info_),
      looks_(recipe.stitch && recipe.stitch_sound ? kRing : 0) {}

void Explanation::add(const media::Frame& frame, const curate::SmallPicture& look,
                      const ShotFinder& finder) {
  if (!looks_.empty()) looks_[static_cast<std::size_t>(frames_) % kRing] = look;
  if (frames_ == 0) shot_begin_ = frame.pts;
  const double width = std::max(1, info_.display_width), height = std::max(1, info_.display_height);
  const double shrink = std::min(1.0, kSide / std::max(width, height));
  const auto side = [&](double size) {
    return std::max(2, static_cast<int>(std::lround(size * shrink)) & ~1);
  };
  media::RgbImage& image = ring_[static_cast<std::size_t>(frames_) % kRing];
  try {
    scaler_.to_rgb(frame,
                   {.rotation = info_.rotation,
                    .mirror = info_.mirror,
                    .width = side(width),
                    .height = side(height)},
                   image);
  } catch (const Error&) {
    image = {};  // no picture: pixels may have any shape
  }
  times_.add(frame.pts);
  ++frames_;
  if (const auto open = finder.open_change(); open && open->begin != fade_) {
    fade_ = open->begin;
    const media::RgbImage* before = picture(open->begin - 1);
    before_fade_ = before ? *before : media::RgbImage{};
  }
}

const media::RgbImage* Explanation::picture(std::int64_t frame) const {
  if (frame < 0 || frame >= frames_ || frame < frames_ - static_cast<std::int64_t>(kRing))
    return nullptr;
  const media::RgbImage& image = ring_[static_cast<std::size_t>(frame) % kRing];
  return image.width > 0 ? &image : nullptr;
}

/// Returns two frames side by side as JPEG. A frame that is no longer in memory is grey. Returns an
/// empty string if both frames are missing.
std::string Explanation::pair(std::int64_t before, std::int64_t after) const {
  const media::RgbImage* left = picture(before);
  if (!left && fade_ && before == *fade_ - 1 && before_fade_.width > 0) left = &before_fade_;
  const media::RgbImage* right = picture(after);
  const media::RgbImage* const any = left ? left : right;
  if (!any) return {};
  media::RgbImage both{2 * any->width + kBetween, any->height, {}};
  const std::size_t row = 3 * static_cast<std::size_t>(both.width);
  both.pixels.assign(row * static_cast<std::size_t>(both.height), 128);
  const auto lay = [&](const media::RgbImage* image, int x) {
    if (!image) return;
    const std::size_t bytes = 3 * static_cast<std::size_t>(image->width);
    for (std::size_t y = 0; y < static_cast<std::size_t>(image->height); ++y)
      std::memcpy(both.pixels.data() + y * row + static_cast<std::size_t>(3 * x),
                  image->pixels.data() + y * bytes, bytes);
  };
  lay(left, 0);
  lay(right, any->width + kBetween);
  return media::encode_jpeg(both, kPairQuality);
}

double Explanation::seconds(std::int64_t frame) const {
  return static_cast<double>(times_.of(frame)) * info_.time_base.value();
}

std::string Explanation::place(std::int64_t frame) const {
  return fmt::format("{:.3f} s, frame {}", seconds(frame), frame);
}

void Explanation::found(const curate::ShotChange& change) {
  const auto in_it = [&](const Decision& one) { return is_in(one.frame, change); };
  std::erase_if(waiting_, in_it);
  std::erase_if(near_, in_it);
  last_.push_back(change);
  if (last_.size() > kRemembered) last_.pop_front();
  const std::int64_t shot_begin = shot_begin_;
  if (change.begin < frames_) shot_begin_ = times_.of(change.begin);
  if (change.end <= 0) return;
  ++changes_;
  // The page shows a score by which a network finds all changes, and the other detector only cuts.
  const bool scored =
      change.type == curate::ChangeType::cut || options_.detector == curate::Detector::transnetv2;
  if (dots_x_.size() < kDots) {
    dots_x_.push_back(seconds(change.frame));
    dots_y_.push_back(scored ? change.score : 0);
  }
  Decision one{change.frame, scored ? change.score / threshold_ : 1 + change.score, {}, {}};
  sort_by_rank(found_, false);
  if (found_.size() == kFound && one.rank >= found_.back().rank) return;
  one.caption = fmt::format("{}: {}, {:.3f}", place(change.frame), curate::name_of(change.type),
                            change.score);
  if (change.begin > change.end)
    one.caption +=
        fmt::format(" of 1; frames {} to {} are in no shot", change.end, change.begin - 1);
  one.jpeg = pair(change.end - 1, change.begin);
  if (one.jpeg.empty()) return;
  one.caption += stitched(change, shot_begin);
  if (found_.size() == kFound) found_.pop_back();
  found_.push_back(std::move(one));
}

/// Returns text for a caption: whether stitching would join the two shots.
std::string Explanation::stitched(const curate::ShotChange& change, std::int64_t shot_begin) {
  if (looks_.empty() || change.begin >= frames_) return {};  // no shot follows
  if (change.begin - change.end > curate::kLongestBridge ||
      change.end <= frames_ - static_cast<std::int64_t>(kRing))
    return "; not stitched: too far apart";
  const auto look = [&](std::int64_t frame) {
    return curate::scene_look(looks_[static_cast<std::size_t>(frame) % kRing]);
  };
  const Join join =
      sound_.judge(curate::look_similarity(look(change.end - 1), look(change.begin)),
                   stitch_threshold_, {shot_begin, times_.of(change.end), times_.of(change.begin)});
  const std::string sound = join.sound ? fmt::format(", sound {:.3f}", *join.sound) : "";
  return fmt::format("; likeness {:.3f}{}: {} (from {:.3f} on)", join.likeness, sound,
                     join.joins() ? "stitched" : "not stitched", join.threshold);
}

void Explanation::nearly(Decision decision) {
  if (decision.jpeg.empty()) return;
  near_.push_back(std::move(decision));
  sort_by_rank(near_, true);
  if (near_.size() > kNear) near_.pop_back();
}

void Explanation::judged(const curate::Judgement& judgement) {
  const std::int64_t frame = judgement.frame;
  scores_.add(seconds(frame), std::max(0.f, judgement.score));
  const bool may_be_cut = judgement.verdict == curate::Judgement::Verdict::cut;
  if (judgement.score < kNearFrom * threshold_) return;
  if (!may_be_cut && near_.size() == kNear && judgement.score <= near_.back().rank) return;
  Decision one{frame, judgement.score, {}, pair(frame - 1, frame), may_be_cut};
  one.caption =
      fmt::format("{}: {:.3f}, {}", place(frame), judgement.score, reason_of(judgement.verdict));
  waiting_.push_back(std::move(one));
}

void Explanation::settle(ShotFinder& finder) {
  for (const curate::Judgement& judgement : finder.take_judgements())
    judged(judgement);
  const std::int64_t settled = finder.settled();
  std::vector<Decision> still;
  for (Decision& one : waiting_) {
    if (one.frame >= settled) {
      still.push_back(std::move(one));
      continue;
    }
    if (std::ranges::any_of(last_, [&](const auto& change) { return is_in(one.frame, change); }))
      continue;  // shown as found
    const bool network = options_.detector == curate::Detector::transnetv2;
    // The decision is part of a long change that has not ended.
    if (network && one.may_be_cut && finder.open_change()) continue;
    if (network && one.may_be_cut)
      one.caption = fmt::format("{}: {:.3f}, above the threshold, as all of the video is",
                                place(one.frame), one.rank);
    nearly(std::move(one));
  }
  waiting_ = std::move(still);
}

ExplainedVideo Explanation::explained() const {
  ExplainedVideo video;
  video.name = path_;
  report::Series threshold{"threshold", {}, {}};
  if (!scores_.x().empty()) {
    threshold.x = {scores_.x().front(), scores_.x().back()};
    threshold.y = {threshold_, threshold_};
  }
  video.chart = report::line_chart(
      {{"score", scores_.x(), scores_.y()}, threshold, {"found", dots_x_, dots_y_, true}},
      "seconds", "score");
  video.chart_caption = fmt::format(
      "{}, {}. The line is the highest score in each of up to {} parts of "
      "the video. {}",
      counted(static_cast<std::uint64_t>(frames_), "frame"),
      counted(changes_, "change of shot", "changes of shot"), Peaks::kMost,
      options_.detector == curate::Detector::transnetv2
          ? "It is the network's probability that a frame is the last one of a shot, or in a "
            "change."
          : "Dots at 0 are fades, dissolves and wipes, which are not found by this score.");
  if (changes_ > kDots) video.chart_caption += fmt::format(" Dots of the first {}.", kDots);
  video.found_title =
      changes_ > found_.size()
          ? fmt::format("Found: the {} of {} that are the least certain.", found_.size(), changes_)
          : "Found:";
  video.near_title =
      fmt::format("Nearly found: the {} highest scores that made no change.", near_.size());
  video.found = figures_of(found_);
  video.near = figures_of(near_);
  return video;
}

void ExplainPage::add(ExplainedVideo video) {
  if (videos_.size() == kVideos) {
    any_left_out_ = true;
    return;
  }
  for (std::vector<report::Figure>* figures : {&video.found, &video.near}) {
    if (decisions_ + figures->size() > kDecisions) {
      any_left_out_ = true;
      figures->clear();
    }
    decisions_ += figures->size();
  }
  videos_.push_back(std::move(video));
}

void ExplainPage::write(const std::string& path, const std::string& incomplete) const {
  report::Page page("Changes of shot");
  page.not_complete(incomplete);
  page.paragraph("Each pair of pictures is the last frame before and the first frame after.");
  if (any_left_out_)
    page.paragraph(
        fmt::format("The page ends at {} videos and {} pairs of pictures; there were "
                    "more.",
                    kVideos, kDecisions));
  for (const ExplainedVideo& video : videos_) {
    page.heading(video.name);
    page.svg(video.chart, video.chart_caption);
    if (!video.found.empty()) page.paragraph(video.found_title);
    if (!video.found.empty()) page.gallery(video.found, 2 * kSide);
    if (!video.near.empty()) page.paragraph(video.near_title);
    if (!video.near.empty()) page.gallery(video.near, 2 * kSide);
  }
  page.write(path);
}

}  // namespace vfm::clip
