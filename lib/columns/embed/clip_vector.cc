// SPDX-License-Identifier: Apache-2.0
#include "columns/embed/clip_vector.h"

#include <span>
#include <utility>

#include "base/json.h"
#include "columns/clip_frames.h"
#include "media/colour/scaler.h"

namespace vfm::columns {
namespace {

class PictureTaker final : public MiddleFrames {
 public:
  PictureTaker(const models::PictureEncoder& encoder, int count,
               std::vector<std::vector<float>>& taken)
      : MiddleFrames(count), encoder_(encoder), taken_(taken) {}

 private:
  void use(const media::Frame& frame, const media::StreamInfo& info) override {
    scaler_.to_rgb(frame, as_shown(info), image_);
    taken_.push_back(encoder_.prepare({image_.width, image_.height, image_.pixels}));
  }
  void clear() override { taken_.clear(); }

  const models::PictureEncoder& encoder_;
  std::vector<std::vector<float>>& taken_;
  media::Scaler scaler_;
  media::RgbImage image_;
};

/// `count` frames in a row, the middle frames of equal parts.
std::vector<float> joined_frames(const std::vector<std::vector<float>>& frames, int count) {
  std::vector<float> all;
  all.reserve(static_cast<std::size_t>(count) * frames.front().size());
  for (std::int64_t k = 0; k < count; ++k) {
    const auto middle =
        part_begin(static_cast<std::int64_t>(frames.size()), std::int64_t{2} * count, 2 * k + 1);
    const std::vector<float>& frame = frames[static_cast<std::size_t>(middle)];
    all.insert(all.end(), frame.begin(), frame.end());
  }
  return all;
}

}  // namespace

int clip_frames(const models::PictureEncoder& encoder, int asked) {
  if (asked > 0) return asked;
  return encoder.frames() > 1 ? encoder.frames() : kClipFrames;
}

PreparedClip prepare_clip(const shard::Member& member, const std::string& where, const Json& known,
                          const models::PictureEncoder& encoder, int count,
                          const media::HardwareDecoder* hardware) {
  PreparedClip clip;
  PictureTaker taker(encoder, count, clip.frames);
  clip.facts = take_frames(member, where, known, hardware, taker);
  return clip;
}

PreparedClip prepare_file(const std::string& path, const models::PictureEncoder& encoder, int count,
                          const media::HardwareDecoder* hardware) {
  PreparedClip clip;
  PictureTaker taker(encoder, count, clip.frames);
  take_file_frames(path, hardware, taker);
  return clip;
}

void ClipVectors::push(std::vector<std::vector<float>> frames) {
  begin(frames.size(), 0);
  for (std::vector<float>& frame : frames)
    keep(std::move(frame), true, std::nullopt);
  end();
}

void ClipVectors::begin(std::size_t frames, std::size_t windows) {
  drop();
  open_ = std::make_shared<Clip>();
  const std::vector<float> zeros(static_cast<std::size_t>(encoder_.dim()), 0.0f);
  open_->planned = frames;
  open_->sums.vector = zeros;
  open_->sums.windows.assign(windows, zeros);
  clips_.push_back(open_);
}

void ClipVectors::drop() {
  if (open_) clips_.pop_back();
  open_ = nullptr;
  clip_frames_.clear();
  window_frames_.clear();
}

void ClipVectors::add(std::vector<float> prepared, bool of_clip,
                      std::optional<std::size_t> window) {
  keep(std::move(prepared), of_clip, window);
  if (prepared_.size() >= encoder_.together()) encode(encoder_.together());
}

void ClipVectors::end() {
  end_window();
  if (!clip_frames_.empty())
    wait(joined_frames(std::exchange(clip_frames_, {}), encoder_.frames()),
         {open_, true, std::nullopt});
  open_ = nullptr;
}

void ClipVectors::keep(std::vector<float> prepared, bool of_clip,
                       std::optional<std::size_t> window) {
  if (encoder_.frames() == 1) return wait(std::move(prepared), {open_, of_clip, window});
  if (window) {
    if (window != window_) end_window();
    window_ = window;
    window_frames_.push_back(prepared);
  }
  if (of_clip) clip_frames_.push_back(std::move(prepared));
}

void ClipVectors::end_window() {
  if (!window_frames_.empty())
    wait(joined_frames(std::exchange(window_frames_, {}), encoder_.frames()),
         {open_, false, window_});
}

void ClipVectors::wait(std::vector<float> prepared, Place place) {
  ++place.clip->waiting;
  prepared_.push_back(std::move(prepared));
  places_.push_back(std::move(place));
}

void ClipVectors::encode(std::size_t count) {
  std::vector<std::vector<float>> made =
      encoder_.encode_prepared(std::span(prepared_).first(count));
  for (std::size_t i = 0; i < count; ++i)
    count_in(std::move(made[i]), places_[i]);
  const auto end = static_cast<std::ptrdiff_t>(count);
  prepared_.erase(prepared_.begin(), prepared_.begin() + end);
  places_.erase(places_.begin(), places_.begin() + end);
}

void ClipVectors::count_in(std::vector<float> vector, const Place& place) const {
  Clip& clip = *place.clip;
  --clip.waiting;
  models::normalise(vector);
  const auto add_to = [&](std::vector<float>& sum) {
    for (std::size_t i = 0; i < sum.size(); ++i)
      sum[i] += vector[i];
  };
  if (place.window) add_to(clip.sums.windows[*place.window]);
  if (!place.of_clip) return;
  add_to(clip.sums.vector);
  if (score_) clip.sums.score += score_(vector) / static_cast<double>(clip.planned);
  ++clip.sums.frames;
}

std::vector<ClipVector> ClipVectors::take(bool rest) {
  const std::size_t together = encoder_.together();
  encode(rest ? prepared_.size() : prepared_.size() / together * together);
  std::vector<ClipVector> vectors;
  while (!clips_.empty() && clips_.front() != open_ && clips_.front()->waiting == 0) {
    ClipVector clip = std::move(clips_.front()->sums);
    models::normalise(clip.vector);
    for (std::vector<float>& window : clip.windows)
      models::normalise(window);
    vectors.push_back(std::move(clip));
    clips_.pop_front();
  }
  return vectors;
}

Json clip_vector_config(const models::PictureEncoder& encoder, int count) {
  Json config = encoder.config();
  config["frames"] = count;
  config["pool"] = encoder.frames() > 1 ? "tokens" : "mean";
  return config;
}

}  // namespace vfm::columns
