// SPDX-License-Identifier: Apache-2.0
#include "clip/cut/shot_cutter.h"

#include <fmt/core.h>

#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/rounding.h"
#include "clip/lists/shot_lists.h"

namespace vfm::clip {

ShotCutter::ShotCutter(const ClipSource& source, const ClipOptions& options, int threads,
                       Crew& crew, Progress& progress, ClipOutput& output)
    : ClipCutter(source, options, threads, crew, progress, output),
      finder_(options.recipe.shots, options.change_model, decoder_.info()),
      late_(path_, decode_, options.most_seconds),
      sound_(path_, options.recipe, decoder_.info()) {}

void ShotCutter::cut() {
  media::Frame frame;
  while (output_.fits() && next(frame)) {
    take(frame);
    const media::Frame plain = tone_mapper_.map(frame);
    curate::compute_features(plain, features_);
    finder_.push(plain, features_);
    times_.add(frame.pts);
    queue_.push_back({std::move(frame), features_.picture,
                      curate::measure_frame(features_, finder_.motion(), shown_aspect())});
    queue_.back().frame.index = frames_ - 1;
    spare(queue_.back().frame);
    take_changes();
    place_settled();
  }
  finder_.finish();
  take_changes();
  place_settled();
  if (after_short_)
    turn({gap_type_, 1, false, true}, &*after_short_);
  else
    turn({"end", 0}, nullptr);
  end_gap(end_pts_);
}

/// Frees the frame's pixels if memory is short.
void ShotCutter::spare(media::Frame& frame) {
  if (leaves_reading() && !lanes_.has_room(static_cast<std::uint64_t>(frame_bytes(frame))))
    free_pixels(frame);
  else
    late_.spare(frame);
  count_waiting(frame, 1);
}

/// Returns true if the crew decodes freed frames again, because only encoders need the pixels.
bool ShotCutter::leaves_reading() const {
  return lanes_.is_helped() && may_read_again() && !options_.stitch_vectors;
}

/// `sign` is 1 if the frame enters the queue, and -1 if it leaves.
void ShotCutter::count_waiting(const media::Frame& frame, int sign) {
  if (!is_freed(frame)) lanes_.note_waiting(sign * frame_bytes(frame));
}

void ShotCutter::take_changes() {
  for (const curate::ShotChange& change : finder_.take()) {
    // A fade-in at the start of the video is not a change between shots.
    if (change.end > 0)
      cuts_->push_back(change_json(change, times_.of(change.frame), decoder_.info().time_base));
    changes_.push_back(change);
  }
}

void ShotCutter::place_settled() {
  while (!queue_.empty() && queue_.front().frame.index < finder_.settled()) {
    if (!leaves_reading()) fetch_until(queue_.front().frame.index);
    count_waiting(queue_.front().frame, -1);
    place(queue_.front());
    last_ = std::move(queue_.front());
    queue_.pop_front();
  }
}

/// Decodes freed frames up to number `index` again.
void ShotCutter::fetch_until(std::int64_t index) {
  for (Seen& seen : queue_) {
    media::Frame& frame = seen.frame;
    if (frame.index > index) break;
    if (!is_freed(frame)) continue;
    frame = late_.fetch(frame);
    if (picture_) frame = picture_->of(frame);
    count_waiting(frame, 1);
  }
}

const ShotCutter::Seen* ShotCutter::seen_at(std::int64_t index) const {
  if (last_ && last_->frame.index == index) return &*last_;
  for (const Seen& seen : queue_)
    if (seen.frame.index == index) return &seen;
  return nullptr;
}

/// Returns the decision if the shots around `change` are stitched. The earlier shot ends at `end`.
std::optional<Join> ShotCutter::stitches(const curate::ShotChange& change, std::int64_t end) {
  const ClipRecipe& recipe = options_.recipe;
  if (!recipe.stitch || !clip_ || after_short_ ||
      change.begin - change.end > curate::kLongestBridge)
    return std::nullopt;
  if (options_.stitch_vectors) fetch_until(change.begin);
  const Seen* before = seen_at(change.end - 1);
  const Seen* after = seen_at(change.begin);
  if (!before || !after) return std::nullopt;
  const Join join = sound_.judge(likeness_of(*before, *after), recipe.stitch_threshold,
                                 {shot_begin_, end, after->frame.pts});
  if (recipe.stitch_sound && !std::isnan(join.likeness)) cuts_->at(change_).update(join.json());
  return join.joins() ? std::optional(join) : std::nullopt;
}

double ShotCutter::likeness_of(const Seen& before, const Seen& after) {
  if (options_.stitch_vectors) return model_likeness(before, after);
  return curate::look_similarity(curate::scene_look(before.picture),
                                 curate::scene_look(after.picture));
}

/// Returns NaN and notes an error if the likeness is unknown.
double ShotCutter::model_likeness(const Seen& before, const Seen& after) {
  std::array<media::RgbImage, 2> pictures;
  try {
    pictures = {shown(before.frame), shown(after.frame)};
  } catch (const Error& error) {  // pixels may have any shape
    note_once(fmt::format("shots are not stitched where they cannot be shown: {}", error.what()));
    return std::numeric_limits<double>::quiet_NaN();
  }
  const std::vector<std::vector<float>> vectors = options_.stitch_vectors(pictures);
  const double likeness = curate::vector_likeness(vectors.at(0), vectors.at(1));
  if (std::isnan(likeness))
    note_once("shots are not stitched where --stitch gives vectors that are not numbers");
  else
    cuts_->at(change_)["likeness"] = six_digits(likeness);
  return likeness;
}

/// Adds a frame to the open clip, to a new clip, or to the gap between two shots.
void ShotCutter::place(const Seen& seen) {
  const media::Frame& frame = seen.frame;
  while (!changes_.empty() && frame.index >= changes_.front().end) {
    const curate::ShotChange change = changes_.front();
    changes_.pop_front();
    if (std::optional<Join> join = stitches(change, frame.pts))
      clip_->joined({frame.pts, *join});
    else
      change_shot({curate::name_of(change.type), change.score, change.end == 0}, change.begin,
                  frame);
    if (change.end > 0) ++change_;
    shot_ = change.begin;
  }
  if (frame.index <= shot_) shot_begin_ = frame.pts;
  // The end of a long fade or transition is not known yet, but its frames belong to no shot.
  const std::optional<ShotFinder::OpenChange> open = finder_.open_change();
  if (open && frame.index >= open->begin && frame.index >= gap_end_) open_gap(*open, frame);
  if (frame.index < gap_end_) {
    if (!gap_begin_) gap_begin_ = frame.pts;
    return;
  }
  end_gap(frame.pts);
  add_to_clip(seen);
}

/// Ends the open clip before `frame`, when it is not known whether another shot follows.
void ShotCutter::open_gap(const ShotFinder::OpenChange& change, const media::Frame& frame) {
  const std::string type = curate::name_of(change.type);
  if (!clip_ || !first_shot() || clip_->span().seconds() >= options_.recipe.min_seconds)
    return change_shot({type, 1}, INT64_MAX, frame);
  after_short_ = frame;
  gap_end_ = INT64_MAX;
  gap_type_ = type;
}

/// Ends the open clip before `frame`. The next clip begins at frame number `begin`.
void ShotCutter::change_shot(const Boundary& boundary, std::int64_t begin,
                             const media::Frame& frame) {
  turn(boundary, &frame);
  after_short_.reset();
  gap_end_ = begin;
  gap_type_ = boundary.type;
}

void ShotCutter::end_gap(std::int64_t pts) {
  if (gap_begin_) leave_out({*gap_begin_, pts, decoder_.info().time_base}, gap_type_);
  gap_begin_.reset();
}

}  // namespace vfm::clip
