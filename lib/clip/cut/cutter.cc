// SPDX-License-Identifier: Apache-2.0
#include "clip/cut/cutter.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/rounding.h"
#include "base/stop.h"
#include "clip/cut/late_frames.h"
#include "clip/cut/measures.h"
#include "io/file.h"

namespace vfm::clip {
namespace {

Json crop_json(const media::StreamInfo& info, const std::optional<CroppedPicture>& cropped) {
  if (!cropped) return nullptr;
  return upright_box(cropped->picture, cropped->width, cropped->height, info);
}

/// Returns null if the sound cannot be opened, or would be fetched only to be measured.
std::unique_ptr<media::SoundMeter> sound_meter(const std::string& path, const ClipRecipe& recipe,
                                               const media::StreamInfo& info) {
  if (!info.has_audio || (info.endless && recipe.audio == media::AudioMode::drop)) return nullptr;
  try {
    return std::make_unique<media::SoundMeter>(path, info.stream);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::runtime || may_pass(error.cause())) throw;
    return nullptr;
  }
}

Json left_out_json(const Span& span, const std::string& reason) {
  return {{"pts_begin", span.begin},
          {"pts_end", span.end},
          {"begin", six_digits(span.begin_seconds())},
          {"end", six_digits(span.end_seconds())},
          {"reason", reason}};
}

}  // namespace

void go_to_middle(media::Decoder& decoder, double seconds) {
  const double before = (decoder.info().duration - seconds) / 2;
  if (seconds > 0 && before > 0)
    decoder.seek(std::llround(before / decoder.info().time_base.value()));
}

ClipCutter::ClipCutter(const ClipSource& source, const ClipOptions& options, int threads,
                       Crew& crew, Progress& progress, ClipOutput& output)
    : path_(source.path),
      options_(options),
      output_(output),
      decode_{.stream = options.recipe.stream,
              .threads = threads,
              .deinterlace = options.recipe.deinterlace,
              .keep_hdr = options.recipe.keep_hdr,
              .hardware = options.hardware},
      decoder_(path_, decode_),
      lanes_(crew),
      place_(progress, io::base_name(path_)) {
  const ClipRecipe& recipe = options.recipe;
  if (recipe.max_seconds > 0)
    max_length_ = std::llround(recipe.max_seconds / decoder_.info().time_base.value());
  if (recipe.audio != media::AudioMode::drop && decoder_.info().has_audio)
    audio_.emplace(path_, decoder_.info().stream);
  sound_meter_ = sound_meter(path_, recipe, decoder_.info());
  if (recipe.crop) picture_ = find_picture(path_, decode_);
  go_to_middle(decoder_, options.most_seconds);
}

bool ClipCutter::next(media::Frame& frame) {
  const double most = options_.most_seconds;
  if (most > 0 && frames_ > 0 && in_seconds(end_pts_ - first_pts_) >= most) return false;
  return decoder_.next(frame);
}

void ClipCutter::take(media::Frame& frame) {
  check_stop();
  hand_over();
  if (picture_) frame = picture_->of(frame);
  if (frames_++ == 0) first_pts_ = end_pts_ = frame.pts;
  // A pass of SpanCutter may begin before the end of the previous pass.
  end_pts_ = std::max(end_pts_, frame.pts + frame.duration);
  place_.at(in_seconds(frame.pts - first_pts_), decoder_.info().duration);
}

/// Returns the aspect ratio of stored pictures, because motion is measured before rotation.
double ClipCutter::shown_aspect() const {
  const media::StreamInfo& info = decoder_.info();
  const int height = picture_ ? picture_->picture.height : info.height;
  const double width =
      (picture_ ? picture_->picture.width : info.width) * info.sample_aspect.value();
  return width > 0 && height > 0 ? width / height : 1;
}

void ClipCutter::add_to_clip(const Seen& seen) {
  if (must_split(seen.frame)) turn({"split", 0}, &seen.frame);
  const bool first = !clip_;
  if (first) {
    const bool known = output_.has(seen.frame.pts);
    clip_ = std::make_shared<ClipEncoder>(options_.recipe, decoder_.info(), options_.verify, known,
                                          known ? SmartStart{} : smart_from(seen.frame.pts));
    lane_ = clip_->known() ? nullptr : lanes_.open();
  }
  clip_->count(seen.frame);
  if (!lane_) return;
  std::optional<media::Frame> before;
  if (first && last_ && options_.verify) before = last_->frame;
  encode(seen, std::move(before));
}

/// Adds a frame of the open clip to its lane. After the first freed frame, all frames of the clip
/// are freed, because they are decoded again anyway.
void ClipCutter::encode(const Seen& seen, std::optional<media::Frame> before) {
  const auto bytes = static_cast<std::uint64_t>(frame_bytes(seen.frame));
  media::Frame frame = seen.frame;
  if (!again_ && (is_freed(frame) || (may_read_again() && !lanes_.has_room(bytes))))
    again_ = std::make_shared<ClipFrames>(path_, decode_, picture_);
  if (again_) free_pixels(frame);
  lanes_.add(*lane_, (again_ ? 0 : bytes) + sizeof(Seen),
             [clip = clip_, again = again_, frame = std::move(frame), before = std::move(before),
              picture = seen.picture, measures = seen.measures] {
               clip->encode(again ? again->fetch(frame) : frame, before ? &*before : nullptr,
                            picture, measures);
             });
}

/// An endless source cannot be read again. A damaged stream must be decoded from its beginning.
/// Verification needs the frames that were decoded first.
bool ClipCutter::may_read_again() const {
  return decoder_.seeks() && corrupt() == 0 && !decoder_.info().endless && !options_.verify;
}

SmartStart ClipCutter::smart_from(std::int64_t pts) {
  const ClipRecipe& recipe = options_.recipe;
  if (!recipe.smart) return {};
  SmartStart start = smart_start(recipe, decoder_.info());
  start.path = path_;
  start.decode = decode_;
  start.decode.waits_for_session = false;
  start.decode.threads = 1;  // the encoding thread has one slot
  if (!start.reason.empty()) return start;
  try {
    if (!packets_) packets_ = std::make_unique<media::SourcePackets>(path_, decoder_.info().stream);
    start.key = packets_->key_from(pts);
    start.kind = packets_->kind();
    start.reason = packets_->refusal();
    if (!start.reason.empty()) start.key.reset();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::runtime || may_pass(error.cause())) throw;
    start.reason = error.what();
  }
  return start;
}

bool ClipCutter::must_split(const media::Frame& frame) const {
  if (!clip_) return false;
  if (ClipEncoder::keeps(frame) != clip_->hdr()) return true;
  return max_length_ > 0 && frame.pts + frame.duration - clip_->begin() > max_length_;
}

/// Ends the open clip, if any, before the frame `next`, which is null at the end of the video.
void ClipCutter::turn(const Boundary& boundary, const media::Frame* next) {
  if (clip_) close(boundary, next);
  begin_ = boundary;
}

void ClipCutter::leave_out(const Span& span, const std::string& reason) {
  left_out_->push_back(left_out_json(span, reason));
}

void ClipCutter::close(const Boundary& end, const media::Frame* next) {
  Ended ended{std::move(clip_), std::move(lane_), begin_, end, given_};
  again_.reset();
  const Span span = ended.clip->span();
  const bool only_shot = first_shot() && (end.type == "end" || end.closes);
  const bool is_short = span.seconds() < options_.recipe.min_seconds && !only_shot;
  if (is_short || (given_ && !cut_.emplace(span.begin, span.end).second)) {
    if (ended.lane) lanes_.cancel(*ended.lane);
    return leave_out(span, is_short ? "short" : "repeated");
  }
  if (ended.lane) {
    media::CopiedVideo copied = ended.clip->copied_from(packets_.get());
    media::AudioTrack audio = sound_of(span);
    ended.audio_codec = audio.codec();
    ended.left_out = left_out_->size();
    left_out_->push_back(nullptr);
    ended.error = errors_.size();
    errors_.emplace_back();
    std::optional<media::Frame> after;
    if (next && options_.verify) after = *next;
    lanes_.add(*ended.lane, copied.video.bytes(),
               [clip = ended.clip, audio = std::move(audio), after = std::move(after), copied] {
                 clip->finish(audio, after ? &*after : nullptr, copied);
               });
    lanes_.seal(*ended.lane);
  }
  ended_.push_back(std::move(ended));
  // Kept clips must be added in order before output_.has() is called for the next clip.
  if (output_.has_more())
    settle();
  else
    hand_over();
}

/// Passes finished clips to the output, in order, up to the first unfinished clip.
void ClipCutter::hand_over() {
  while (!ended_.empty() && (!ended_.front().lane || lanes_.is_over(*ended_.front().lane))) {
    const Ended next = std::move(ended_.front());
    ended_.pop_front();
    try {
      if (next.lane) lanes_.check(*next.lane);
      hand_over(next);
    } catch (...) {
      ended_.clear();  // no clip follows an error
      lane_.reset();
      throw;
    }
  }
}

void ClipCutter::settle() {
  while (!ended_.empty() && output_.fits()) {
    if (ended_.front().lane) lanes_.finish(*ended_.front().lane);
    hand_over();
  }
  if (!lane_) return;
  lanes_.finish(*lane_);
  lanes_.check(*lane_);
}

void ClipCutter::hand_over(const Ended& ended) {
  const auto& [clip, lane, begin, end, given, audio_codec, left_out, error] = ended;
  const Span span = clip->span();
  if (clip->known())
    return output_.add(decoder_.info(), {.span = span, .hdr = clip->hdr(), .known = true});
  if (!clip->failure().empty()) {
    errors_[error] = fmt::format("the clip from {:.3f} s to {:.3f} s is left out: {}",
                                 span.begin_seconds(), span.end_seconds(), clip->failure());
    (*left_out_)[left_out] = left_out_json(span, "error");
    return;
  }
  Json facts = clip->facts(audio_codec);
  add_boxes(facts, clip->pictures(), picture_, decoder_.info());
  add_sound_measures(facts, sound_meter_ ? sound_meter_->measure(span) : std::nullopt);
  if (options_.recipe.crop) facts["crop"] = crop_json(decoder_.info(), picture_);
  if (const Json& model = options_.recipe.stitch_model; !model.is_null())
    facts["stitch_model"] = {{"name", model.at("name")},
                             {"hash", model.at("hash")},
                             {"rule", model.at("rule")},
                             {"threshold", options_.recipe.stitch_threshold}};
  if (const Json& model = options_.recipe.detector_model; !model.is_null())
    facts["detector_model"] = {{"name", model.at("name")},
                               {"hash", model.at("hash")},
                               {"threshold", options_.recipe.shots.used_threshold()}};
  facts["start_type"] = begin.type;
  facts["start_score"] = six_digits(begin.score);
  facts["end_type"] = end.type;
  facts["end_score"] = six_digits(end.score);
  output_.add(decoder_.info(), {.span = span,
                                .mp4 = clip->take_mp4(),
                                .facts = std::move(facts),
                                .given = given,
                                .hdr = clip->hdr()});
}

/// If sound cannot be read, the clip is silent. Each reason is reported once.
media::AudioTrack ClipCutter::sound_of(const Span& span) {
  if (!audio_) return {};
  try {
    media::AudioTrack track = audio_->read(span, options_.recipe.audio);
    sound_corrupt_ += track.corrupt();
    return track;
  } catch (const Error& error) {
    if (may_pass(error.cause())) throw;
    note_once(fmt::format("clips are silent: {}", error.what()));
    return {};
  }
}

void ClipCutter::note_once(const std::string& error) {
  if (std::find(errors_.begin(), errors_.end(), error) == errors_.end()) errors_.push_back(error);
}

media::RgbImage ClipCutter::shown(const media::Frame& frame) {
  const media::StreamInfo& info = decoder_.info();
  media::ScaleOptions scale{.rotation = info.rotation,
                            .mirror = info.mirror,
                            .width = info.display_width,
                            .height = info.display_height};
  if (picture_ && frame.width == picture_->picture.width &&
      frame.height == picture_->picture.height) {
    scale.width =
        std::max(1, static_cast<int>(std::lround(frame.width * info.sample_aspect.value())));
    scale.height = frame.height;
    if (info.rotation % 180 != 0) std::swap(scale.width, scale.height);
  }
  media::RgbImage image;
  scaler_.to_rgb(tone_mapper_.map(frame), scale, image);
  return image;
}

std::int64_t ClipCutter::corrupt() const {
  return std::max(corrupt_before_, decoder_.corrupt());
}

Json ClipCutter::summary() const {
  Json j;
  j["stream"] = decoder_.info().stream;
  j["frames"] = frames_;
  j["seconds"] = six_digits(in_seconds(end_pts_ - first_pts_));
  j["corrupt"] = corrupt();
  if (audio_) j["sound_corrupt"] = sound_corrupt_;
  j["cuts"] = cuts_;
  j["left_out"] = Json::array();
  for (const Json& span : *left_out_)
    if (!span.is_null()) j["left_out"].push_back(span);
  j["errors"] = Json::array();
  for (const std::string& error : errors_)
    if (!error.empty()) j["errors"].push_back(error);
  if (corrupt() > 0)
    j["errors"].push_back(
        fmt::format("{} packets or frames are damaged or missing; the rest is used", corrupt()));
  if (sound_corrupt_ > 0)
    j["errors"].push_back(
        fmt::format("{} packets of the sound are damaged; the rest is used", sound_corrupt_));
  return j;
}

}  // namespace vfm::clip
