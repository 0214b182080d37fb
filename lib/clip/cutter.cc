// SPDX-License-Identifier: Apache-2.0
#include "clip/cutter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/rounding.h"
#include "base/stop.h"
#include "clip/shot_lists.h"
#include "io/file.h"

namespace vfm::clip {
namespace {

/// Longer gaps between two shots are not bridged by stitching: their frames are gone by then, and
/// what was away for half a second was no glitch.
constexpr std::int64_t kLongestBridge = 12;  // frames

/// "WIDTHxHEIGHT+X+Y" in the upright picture, as image programs write it; null: no bars.
Json crop_json(const media::StreamInfo& info, const std::optional<CroppedPicture>& cropped) {
  if (!cropped) return nullptr;
  const media::Rectangle r = media::rotate_rectangle(cropped->picture, cropped->width,
                                                     cropped->height, info.rotation, info.mirror);
  return fmt::format("{}x{}+{}+{}", r.width, r.height, r.x, r.y);
}

}  // namespace

ClipCutter::ClipCutter(const std::string& path, const ClipRecipe& recipe, bool verify,
                       const media::DecodeOptions& decode, Progress& progress,
                       const std::vector<GivenSpan>* spans)
    : path_(path),
      recipe_(recipe),
      verify_(verify),
      decode_(decode),
      decoder_(path, decode),
      place_(progress, io::base_name(path)),
      detector_(recipe.shots),
      late_(path, decode),
      spans_(spans) {
  if (recipe_.max_seconds > 0)
    max_length_ = std::llround(recipe_.max_seconds / decoder_.info().time_base.value());
  if (recipe_.audio != media::AudioMode::drop && decoder_.info().has_audio)
    audio_.emplace(path, decoder_.info().stream);
  if (recipe_.crop) picture_ = find_picture(path, decode);
}

ClipCutter::~ClipCutter() = default;

void ClipCutter::report_place(const media::Frame& frame) {
  place_.at(static_cast<double>(frame.pts - first_pts_) * decoder_.info().time_base.value(),
            decoder_.info().duration);
}

/// As stored, since motion is measured before rotation.
double ClipCutter::shown_aspect() const {
  const media::StreamInfo& info = decoder_.info();
  const int height = picture_ ? picture_->picture.height : info.height;
  const double width =
      (picture_ ? picture_->picture.width : info.width) * info.sample_aspect.value();
  return width > 0 && height > 0 ? width / height : 1;
}

std::optional<Clip> ClipCutter::next() {
  // No step ends more than one clip.
  while (!ready_ && !ended_)
    ended_ = !(spans_ ? step_spans() : recipe_.stride > 0 ? step_stride() : step_shots());
  return std::exchange(ready_, std::nullopt);
}

/// Gives one frame its place, or takes in one more. False at the end.
bool ClipCutter::step_shots() {
  if (place_next()) return true;
  if (decoded_) {
    if (clip_) close({"end", 0}, nullptr);
    end_gap(end_pts_);
    return false;
  }
  media::Frame frame;
  if (decoder_.next(frame)) {
    check_stop();
    if (picture_) frame = picture_->of(frame);
    curate::compute_features(tone_mapper_.map(frame), features_);
    detector_.push(features_);
    if (frames_ == 0) first_pts_ = frame.pts;
    end_pts_ = frame.pts + frame.duration;
    times_.add(frame.pts);
    report_place(frame);
    queue_.push_back({std::move(frame), features_.picture,
                      curate::measure_frame(features_, detector_.motion(), shown_aspect())});
    queue_.back().frame.index = frames_++;
    late_.spare(queue_.back().frame);
  } else {
    detector_.finish();
    decoded_ = true;
  }
  take_changes();
  return true;
}

/// What the detector is certain of.
void ClipCutter::take_changes() {
  for (const curate::ShotChange& change : detector_.take()) {
    // A fade-in at the very start parts no shots.
    if (change.end > 0)
      cuts_.push_back(change_json(change, times_.of(change.frame), decoder_.info().time_base));
    changes_.push_back(change);
  }
}

/// Gives the next frame that is settled its place; false if there is none.
bool ClipCutter::place_next() {
  if (queue_.empty() || queue_.front().frame.index >= detector_.settled()) return false;
  media::Frame& frame = queue_.front().frame;
  if (LateFrames::is_spared(frame)) {
    frame = late_.fetch(frame.index, frame.pts);
    if (picture_) frame = picture_->of(frame);
  }
  place(queue_.front());
  last_ = std::move(queue_.front());
  queue_.pop_front();
  return true;
}

const curate::SmallPicture* ClipCutter::picture_of(std::int64_t index) const {
  if (last_ && last_->frame.index == index) return &last_->picture;
  for (const Waiting& w : queue_)
    if (w.frame.index == index) return &w.picture;
  return nullptr;
}

bool ClipCutter::stitches(const curate::ShotChange& change) const {
  if (!recipe_.stitch || !clip_ || change.begin - change.end > kLongestBridge) return false;
  const curate::SmallPicture* before = picture_of(change.end - 1);
  const curate::SmallPicture* after = picture_of(change.begin);
  return before && after &&
         curate::look_similarity(curate::scene_look(*before), curate::scene_look(*after)) >=
             recipe_.stitch_threshold;
}

/// Into the open clip, into a new one, or into the gap between two shots.
void ClipCutter::place(const Waiting& waiting) {
  const media::Frame& frame = waiting.frame;
  while (!changes_.empty() && frame.index >= changes_.front().end) {
    const curate::ShotChange change = changes_.front();
    changes_.pop_front();
    if (stitches(change))
      clip_->joined();
    else
      turn({curate::name_of(change.type), change.score}, change.begin, frame);
  }
  // The change that ends a long fade is not known yet, but its frames belong to no shot.
  const std::optional<std::int64_t> fade = detector_.open_fade();
  if (fade && frame.index >= *fade && frame.index >= gap_end_) turn({"fade", 1}, INT64_MAX, frame);
  if (frame.index < gap_end_) {
    if (!gap_begin_) gap_begin_ = frame.pts;
    return;
  }
  end_gap(frame.pts);
  if (must_split(frame)) turn({"split", 0}, frame.index, frame);
  add_to_clip(waiting);
}

/// Into the open clip, or into a new one.
void ClipCutter::add_to_clip(const Waiting& waiting) {
  if (!clip_) {
    const bool known = !kept_.empty() && kept_.front().begin == waiting.frame.pts;
    clip_ = std::make_unique<ClipEncoder>(recipe_, decoder_.info(), verify_, known);
  }
  clip_->add(waiting.frame, last_ ? &last_->frame : nullptr, waiting.picture, waiting.measures);
}

/// A clip has its greatest length, and is HDR or is not.
bool ClipCutter::must_split(const media::Frame& frame) const {
  if (!clip_) return false;
  if (ClipEncoder::keeps(frame) != clip_->hdr()) return true;
  return max_length_ > 0 && frame.pts + frame.duration - clip_->begin() > max_length_;
}

/// Ends the open clip before `frame`; the next one begins at frame number `begin`.
void ClipCutter::turn(const Boundary& boundary, std::int64_t begin, const media::Frame& frame) {
  if (clip_) close(boundary, &frame);
  begin_ = boundary;
  gap_end_ = begin;
  gap_type_ = boundary.type;
}

void ClipCutter::end_gap(std::int64_t pts) {
  if (gap_begin_) leave_out({*gap_begin_, pts, decoder_.info().time_base}, gap_type_);
  gap_begin_.reset();
}

void ClipCutter::leave_out(const Span& span, const std::string& reason) {
  left_out_.push_back({{"pts_begin", span.begin},
                       {"pts_end", span.end},
                       {"begin", six_digits(span.begin_seconds())},
                       {"end", six_digits(span.end_seconds())},
                       {"reason", reason}});
}

/// Ends the open clip: it is ready, or left out if it is too short. `next`: the frame after it.
void ClipCutter::close(const Boundary& end, const media::Frame* next) {
  const std::unique_ptr<ClipEncoder> clip = std::move(clip_);
  const Span span = clip->span();
  const bool whole_video = begin_.type == "start" && end.type == "end";
  if (span.seconds() < recipe_.min_seconds && !whole_video) return leave_out(span, "short");
  if (given_ && !cut_.emplace(span.begin, span.end).second) return leave_out(span, "repeated");
  if (clip->known()) {
    ready_ = Clip{span, kept_.front(), "", {}, given_, clip->hdr()};
    return kept_.pop_front();
  }
  const media::AudioTrack audio = sound_of(span);
  std::string mp4;
  try {
    mp4 = clip->finish(audio, next);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::usage) throw;
    errors_.push_back(fmt::format("the clip from {:.3f} s to {:.3f} s is left out: {}",
                                  span.begin_seconds(), span.end_seconds(), error.what()));
    return leave_out(span, "error");
  }
  Json facts = clip->facts(mp4.size(), audio.codec());
  if (recipe_.crop) facts["crop"] = crop_json(decoder_.info(), picture_);
  facts["start_type"] = begin_.type;
  facts["start_score"] = six_digits(begin_.score);
  facts["end_type"] = end.type;
  facts["end_score"] = six_digits(end.score);
  ready_ = Clip{span, {}, std::move(mp4), std::move(facts), given_, clip->hdr()};
}

/// Sound that cannot be read costs no clip: the clip is silent, reported once for each reason.
media::AudioTrack ClipCutter::sound_of(const Span& span) {
  if (!audio_) return {};
  try {
    media::AudioTrack track = audio_->read(span, recipe_.audio);
    sound_corrupt_ += track.corrupt();
    return track;
  } catch (const Error& error) {
    const std::string message = fmt::format("clips are silent: {}", error.what());
    if (std::find(errors_.begin(), errors_.end(), message) == errors_.end())
      errors_.push_back(message);
    return {};
  }
}

std::int64_t ClipCutter::corrupt() const {
  return std::max(corrupt_before_, decoder_.corrupt());
}

Json ClipCutter::summary() const {
  const double base = decoder_.info().time_base.value();
  Json j;
  j["stream"] = decoder_.info().stream;
  j["frames"] = frames_;
  j["seconds"] = six_digits(static_cast<double>(end_pts_ - first_pts_) * base);
  j["corrupt"] = corrupt();
  if (audio_) j["sound_corrupt"] = sound_corrupt_;
  j["cuts"] = cuts_;
  j["left_out"] = left_out_;
  return j;
}

}  // namespace vfm::clip
