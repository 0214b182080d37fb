// SPDX-License-Identifier: Apache-2.0
#include "clip/cut/sound_across.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/json.h"
#include "base/rounding.h"
#include "curate/shots/sound_continuity.h"
#include "curate/shots/stitch.h"

namespace vfm::clip {
namespace {

static_assert(media::SoundSamples::kRate == curate::kContinuityRate);
static_assert(media::SoundSamples::kChannels == curate::kContinuityChannels);

/// Maximum gap between a change and the sound beside it.
constexpr std::int64_t kBeside = curate::kContinuityRate / 25;  // samples, 40 ms

}  // namespace

Json Join::json() const {
  return {{"likeness", six_digits(likeness)},
          {"sound", sound ? Json(six_digits(*sound)) : Json()},
          {"threshold", six_digits(threshold)}};
}

void add_joins(Json& facts, const std::vector<JoinPlace>& joins, Rational time_base) {
  Json& list = facts["joins"] = Json::array();
  std::optional<double> least;
  for (const JoinPlace& one : joins) {
    Json join = {{"pts", one.pts},
                 {"time", six_digits(static_cast<double>(one.pts) * time_base.value())}};
    join.update(one.join.json());
    list.push_back(std::move(join));
    if (one.join.sound) least = std::min(least.value_or(1), *one.join.sound);
  }
  facts["sound_at_joins"] = least ? Json(six_digits(*least)) : Json();
}

SoundAcross::SoundAcross(const std::string& path, const ClipRecipe& recipe,
                         const media::StreamInfo& info)
    : path_(path),
      stream_(info.stream),
      time_base_(info.time_base),
      wanted_(recipe.stitch && recipe.stitch_sound && info.has_audio &&
              !(info.endless && recipe.audio == media::AudioMode::drop)) {}

Join SoundAcross::judge(double likeness, double threshold, const Place& place) {
  Join join{likeness, {}, threshold};
  if (!wanted_ || !(likeness >= curate::threshold_with_sound(threshold, 1))) return join;
  join.sound = across(place);
  if (join.sound) join.threshold = curate::threshold_with_sound(threshold, *join.sound);
  return join;
}

std::optional<double> SoundAcross::across(const Place& place) {
  try {
    if (!samples_) samples_ = std::make_unique<media::SoundSamples>(path_, stream_);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::runtime || may_pass(error.cause())) throw;
    wanted_ = false;
    return std::nullopt;
  }
  const std::int64_t side =
      std::max<std::int64_t>(1, std::llround(curate::kContinuitySide / time_base_.value()));
  const Span left{std::max(place.shot_begin, place.end - side), place.end, time_base_};
  const Span right{place.next, place.next + side, time_base_};
  const std::optional<media::SoundSamples::Heard> before = samples_->read(left);
  if (!before) return std::nullopt;
  const std::optional<media::SoundSamples::Heard> after = samples_->read(right);
  if (!after) return std::nullopt;
  const auto heard_until = before->begin + static_cast<std::int64_t>(before->samples.size()) /
                                               curate::kContinuityChannels;
  const auto wanted_until = std::llround(left.seconds() * curate::kContinuityRate);
  if (heard_until + kBeside < wanted_until || after->begin > kBeside) return std::nullopt;
  const auto found = curate::sound_continuity(before->samples, after->samples);
  return found ? std::optional(found->continuity) : std::nullopt;
}

}  // namespace vfm::clip
