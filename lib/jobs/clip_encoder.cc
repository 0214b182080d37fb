// SPDX-License-Identifier: Apache-2.0
#include "jobs/clip_encoder.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

namespace vfm::jobs {

double six_digits(double value) {
  const double rounded = std::round(value * 1e6) / 1e6;
  return std::isfinite(rounded) ? rounded : 0;
}

ClipEncoder::ClipEncoder(const ClipRecipe& recipe, const media::StreamInfo& info,
                         std::optional<std::int64_t> known_end)
    : recipe_(recipe), info_(info), known_end_(known_end) {
  evidence_.time_base = info.time_base;
}

media::Frame ClipEncoder::upright(const media::Frame& frame) const {
  return media::rotate_frame(frame, info_.rotation, info_.mirror);
}

void ClipEncoder::add(const media::Frame& frame, const media::Frame* before,
                      const curate::SmallPicture& picture, const curate::FrameMeasures& measures) {
  if (frames_ == 0) begin_ = frame.pts;
  ++frames_;
  end_ = frame.pts + frame.duration;
  if (known_end_) return;
  const media::Frame shown = upright(frame);
  if (!encoder_) {
    const bool turned = info_.rotation % 180 != 0;
    sample_aspect_ = info_.sample_aspect;
    if (turned) std::swap(sample_aspect_.num, sample_aspect_.den);
    media::EncodeOptions options{.encoder = recipe_.encoder,
                                 .quality = recipe_.quality,
                                 .preset = recipe_.preset,
                                 .width = shown.width,
                                 .height = shown.height,
                                 .time_base = info_.time_base,
                                 .frame_rate = info_.frame_rate,
                                 .sample_aspect = sample_aspect_};
    encoder_ = std::make_unique<media::Encoder>(options);
    height_ = shown.height;
    width_ = static_cast<int>(std::lround(shown.width * sample_aspect_.value()));
    if (before) evidence_.before = upright(*before);
    evidence_.first = shown;
  }
  if (frames_ == 2) evidence_.second = shown;
  evidence_.second_last = std::exchange(evidence_.last, shown);
  evidence_.pts.push_back(frame.pts);
  evidence_.end = end_;
  encoder_->add(shown);
  meter_.add(measures, picture, frame);
}

std::string ClipEncoder::finish(const media::AudioTrack& audio, const media::Frame* after,
                                bool verify) {
  encoder_->add_audio(audio);
  std::string mp4 = encoder_->finish();
  if (verify) {
    if (after) evidence_.after = upright(*after);
    verify_clip(mp4, evidence_);
    verified_ = true;
  }
  return mp4;
}

Json ClipEncoder::facts(std::size_t bytes, const std::string& audio_codec) const {
  const Span s = span();
  const double seconds = s.seconds();
  const curate::ClipMeasures m = meter_.result(seconds);
  // The nominal rate where the clip keeps it; times in milliseconds would make 23.98 of 24.
  const double nominal = info_.frame_rate.value(),
               counted = seconds > 0 ? static_cast<double>(frames_) / seconds : 0;
  const double fps =
      nominal > 0 && std::abs(nominal - counted) < 0.02 * nominal ? nominal : counted;
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
  j["frames"] = frames_;
  j["codec"] = encoder_->codec_name();
  j["encoder"] = encoder_->encoder_name();
  j["quality"] = recipe_.quality;
  j["bytes"] = bytes;
  j["audio"] = audio_codec.empty() ? Json() : Json(audio_codec);
  j["sample_aspect"] = fmt::format("{}/{}", sample_aspect_.num, sample_aspect_.den);
  j["source_codec"] = info_.codec;
  j["source_width"] = info_.display_width;
  j["source_height"] = info_.display_height;
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
  j["shots"] = shots_;
  if (verified_) j["verified"] = true;
  return j;
}

}  // namespace vfm::jobs
