// SPDX-License-Identifier: Apache-2.0
#include "clip/cut/encoder.h"

#include <fmt/core.h>

#include <cmath>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/rounding.h"
#include "clip/cut/measures.h"

namespace vfm::clip {
namespace {

// In seconds. If a source starts later, the json of its clips says so, because subtitles that count
// from 0 would be visibly late.
constexpr double kLateStart = 0.1;

}  // namespace

ClipEncoder::ClipEncoder(const ClipRecipe& recipe, const media::StreamInfo& info, bool verify,
                         bool known, SmartStart smart)
    : recipe_(recipe), info_(info), known_(known), start_(std::move(smart)), verify_(verify) {}

media::Frame ClipEncoder::shown(const media::Frame& frame) {
  media::Frame upright = media::rotate_frame(frame, info_.rotation, info_.mirror);
  return resizer_ ? resizer_->resize(upright) : upright;
}

void ClipEncoder::count(const media::Frame& frame) {
  if (frames_ == 0) begin_ = frame.pts, hdr_ = keeps(frame);
  ++frames_;
  if (start_.key && frame.pts >= *start_.key) later_.push_back(frame.pts);
  interlaced_ = interlaced_ || frame.interlaced;
  end_ = frame.pts + frame.duration;
}

media::CopiedVideo ClipEncoder::copied_from(media::SourcePackets* packets) const {
  if (!packets || later_.empty()) return {};
  try {
    return packets->copy(*start_.key, later_, end_);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::runtime || may_pass(error.cause())) throw;
    return {{}, 0, error.what()};
  }
}

void ClipEncoder::encode(const media::Frame& frame, const media::Frame* before,
                         const curate::SmallPicture& picture,
                         const curate::FrameMeasures& measures) {
  if (encode_options_.width == 0) open(frame, before);
  meter_.add(measures, picture, meter_.looks() ? tone_mapper_.map(frame) : frame);
  if (!clock_) return encode_shown(shown(frame));
  for (const media::Frame& next : clock_->push(shown(frame)))
    encode_shown(next);
}

void ClipEncoder::open(const media::Frame& first, const media::Frame* before) {
  const bool turned = info_.rotation % 180 != 0;
  int width = turned ? first.height : first.width, height = turned ? first.width : first.height;
  sample_aspect_ = info_.sample_aspect;
  if (turned) std::swap(sample_aspect_.num, sample_aspect_.den);
  width_ = static_cast<int>(std::lround(width * sample_aspect_.value()));
  height_ = height;
  if (recipe_.size.any()) {
    std::tie(width, height) = recipe_.size.of(width_, height_);
    resizer_.emplace(width, height);
    width_ = width, height_ = height;
    sample_aspect_ = {1, 1};
  }
  color_ = first.layout == media::PixelLayout::rgb24 ? media::Color{} : first.color;
  if (recipe_.rate.num > 0) clock_.emplace(recipe_.rate, info_.time_base);
  evidence_.time_base = clock_ ? clock_->time_base() : info_.time_base;
  encode_options_ = {.encoder = hdr_ ? recipe_.hdr_encoder : recipe_.encoder,
                     .quality = recipe_.quality,
                     .bit_depth = hdr_ ? 10 : 8,
                     .preset = recipe_.preset,
                     .width = width,
                     .height = height,
                     .time_base = evidence_.time_base,
                     .frame_rate = clock_ ? recipe_.rate : info_.frame_rate,
                     .sample_aspect = sample_aspect_};
  if (before && verify_) evidence_.before = shown(*before);
  if (!recipe_.smart || !start_.reason.empty()) return open_encoder();
  smart_ = std::make_unique<SmartCut>(start_, encode_options_);
  codec_name_ = info_.codec;
  encoder_name_ = start_.encoder;
}

void ClipEncoder::open_encoder() {
  encoder_ = std::make_unique<media::VideoEncoder>(encode_options_);
  codec_name_ = encoder_->codec_name();
  encoder_name_ = encoder_->encoder_name();
  // An encoder that accepts only even sizes repeats the last column or row.
  width_ = static_cast<int>(std::lround(encoder_->coded_width() * sample_aspect_.value()));
  height_ = encoder_->coded_height();
}

void ClipEncoder::encode_shown(const media::Frame& frame) {
  ++encoded_;
  if (encoder_) encoder_->add(frame);
  if (smart_) {
    try {
      smart_->add(frame);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::runtime) throw;
      start_.reason = error.what();
      smart_.reset();
    }
  }
  if (!verify_) return;
  if (smart_) evidence_.copied.push_back(smart_->is_head(frame) ? "" : picture_hash(frame));
  if (encoded_ == 1) evidence_.first = frame;
  if (encoded_ == 2) evidence_.second = frame;
  evidence_.second_last = std::exchange(evidence_.last, frame);
  evidence_.pts.push_back(frame.pts);
  evidence_.end = frame.pts + frame.duration;
}

void ClipEncoder::finish(const media::AudioTrack& audio, const media::Frame* after,
                         const media::CopiedVideo& copied) {
  try {
    mp4_ = make_mp4(audio, after, copied);
    bytes_ = mp4_.size();
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::usage || may_pass(error.cause())) throw;
    failure_ = error.what();
  }
  // Free large objects now, because a finished clip may wait for earlier clips.
  encoder_.reset();
  smart_.reset();
  evidence_ = {};
}

std::string ClipEncoder::make_mp4(const media::AudioTrack& audio, const media::Frame* after,
                                  const media::CopiedVideo& copied) {
  if (smart_) {
    try {
      std::string mp4 = smart_->finish(later_, copied, end_, audio);
      const auto behind = static_cast<std::size_t>(smart_->head() + smart_->copied());
      for (std::size_t i = behind; i < evidence_.copied.size(); ++i)
        evidence_.copied[i].clear();
      prove(mp4, after);
      copied_ = smart_->copied();
      if (copied_ == 0) start_.reason = "no key frame to copy from is in it";
      return mp4;
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::usage || may_pass(error.cause())) throw;
      start_.reason = error.what();
    }
  }
  if (!encoder_) encode_again();
  encoder_->add_audio(audio);
  std::string mp4 = encoder_->finish();
  prove(mp4, after);
  return mp4;
}

/// Encodes all frames after copying has failed.
void ClipEncoder::encode_again() {
  smart_.reset();
  encoded_ = 0;
  ClipEvidence evidence;
  evidence.before = evidence_.before;
  evidence.time_base = evidence_.time_base;
  evidence_ = std::move(evidence);
  open_encoder();
  decode_again(start_, begin_, end_,
               [&](const media::Frame& frame) { encode_shown(shown(frame)); });
  if (encoded_ != frames_)
    fail("it cannot be copied ({}), and decoded once more it has {} frames, not {}", start_.reason,
         encoded_, frames_);
}

void ClipEncoder::prove(const std::string& mp4, const media::Frame* after) {
  if (!verify_) return;
  if (after) evidence_.after = shown(*after);
  verify_clip(mp4, evidence_);
  verified_ = true;
}

Json ClipEncoder::facts(const std::string& audio_codec) const {
  const Span s = span();
  const double seconds = s.seconds();
  const curate::ClipMeasures m = meter_.result(seconds);
  // The nominal rate is used if the clip keeps it. Times in milliseconds would turn 24 into 23.98.
  const double nominal = info_.frame_rate.value(),
               counted = seconds > 0 ? static_cast<double>(frames_) / seconds : 0;
  const double kept =
      nominal > 0 && std::abs(nominal - counted) < 0.02 * nominal ? nominal : counted;
  const double fps = clock_ ? recipe_.rate.value() : kept;
  Json j;
  j["stream"] = info_.stream;
  j["time_base"] = fmt::format("{}/{}", info_.time_base.num, info_.time_base.den);
  j["pts_begin"] = s.begin;
  j["pts_end"] = s.end;
  j["begin"] = six_digits(s.begin_seconds());
  j["end"] = six_digits(s.end_seconds());
  j["seconds"] = six_digits(seconds);
  j["width"] = width_;
  j["height"] = height_;
  j["fps"] = six_digits(fps);
  j["frames"] = encoded_;
  j["codec"] = codec_name_;
  j["encoder"] = copied_ < encoded_ ? Json(encoder_name_) : Json();
  j["quality"] = recipe_.quality;
  j["bytes"] = bytes_;
  j["audio"] = audio_codec.empty() ? Json() : Json(audio_codec);
  j["sample_aspect"] = fmt::format("{}/{}", sample_aspect_.num, sample_aspect_.den);
  j["transfer"] = media::transfer_name(color_.transfer);
  j["primaries"] = media::primaries_name(color_.primaries);
  j["bit_depth"] = hdr_ ? 10 : 8;
  if (std::abs(info_.start) >= kLateStart) j["source_begin"] = six_digits(info_.start);
  j["source_codec"] = info_.codec;
  j["source_width"] = info_.display_width;
  j["source_height"] = info_.display_height;
  j["source_transfer"] = media::transfer_name(info_.transfer);
  j["source_primaries"] = media::primaries_name(info_.primaries);
  j["source_bit_depth"] = info_.bit_depth;
  j["source_interlaced"] = interlaced_;
  j["deinterlaced"] = interlaced_ && recipe_.deinterlace;
  j["motion"] = six_digits(m.motion);
  j["motion_per_second"] = six_digits(m.motion_per_second);
  j["brightness"] = six_digits(m.brightness);
  j["contrast"] = six_digits(m.contrast);
  j["saturation"] = six_digits(m.saturation);
  j["sharpness"] = six_digits(m.sharpness);
  j["black"] = six_digits(m.black);
  j["frozen"] = six_digits(m.frozen);
  for (std::size_t i = 0; i < m.colors.size(); ++i) {
    j[fmt::format("color_{}", i + 1)] = m.colors[i].rgb;
    j[fmt::format("color_{}_share", i + 1)] = six_digits(m.colors[i].share);
  }
  add_picture_measures(j, m);
  if (recipe_.smart) {
    j["frames_encoded"] = encoded_ - copied_;
    j["frames_copied"] = copied_;
    j["not_copied"] = start_.reason.empty() ? Json() : Json(start_.reason);
  }
  j["shots"] = shots_;
  if (recipe_.stitch && recipe_.stitch_sound) add_joins(j, joins_, info_.time_base);
  if (verified_) j["verified"] = true;
  return j;
}

}  // namespace vfm::clip
