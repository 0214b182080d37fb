// SPDX-License-Identifier: Apache-2.0
#include "columns/clip_vector.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

#include "columns/clip_frames.h"
#include "media/scaler.h"

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

}  // namespace

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
  frames_.push_back(frames.size());
  std::move(frames.begin(), frames.end(), std::back_inserter(prepared_));
}

std::vector<ClipVector> ClipVectors::take(bool rest) {
  const std::size_t together = encoder_.together();
  const std::size_t count = rest ? prepared_.size() : prepared_.size() / together * together;
  std::vector<std::vector<float>> made =
      encoder_.encode_prepared(std::span(prepared_).first(count));
  std::move(made.begin(), made.end(), std::back_inserter(encoded_));
  prepared_.erase(prepared_.begin(), prepared_.begin() + static_cast<std::ptrdiff_t>(count));
  std::vector<ClipVector> vectors;
  auto next = encoded_.begin();
  while (!frames_.empty()) {
    const auto frames = static_cast<std::ptrdiff_t>(frames_.front());
    if (encoded_.end() - next < frames) break;
    vectors.push_back(pool({std::move_iterator(next), std::move_iterator(next + frames)}));
    next += frames;
    frames_.pop_front();
  }
  encoded_.erase(encoded_.begin(), next);
  return vectors;
}

ClipVector ClipVectors::pool(std::vector<std::vector<float>> frames) const {
  ClipVector clip;
  clip.frames = frames.size();
  if (score_) {
    for (std::vector<float> frame : frames) {
      models::normalise(frame);
      clip.score += score_(frame) / static_cast<double>(frames.size());
    }
  }
  clip.vector = pool_vectors(std::move(frames), encoder_.dim());
  return clip;
}

std::vector<float> pool_vectors(std::vector<std::vector<float>> vectors, int dim) {
  std::vector<float> sum(static_cast<std::size_t>(dim), 0.0f);
  for (std::vector<float>& vector : vectors) {
    models::normalise(vector);
    for (std::size_t i = 0; i < sum.size(); ++i)
      sum[i] += vector[i];
  }
  models::normalise(sum);
  return sum;
}

Json clip_vector_config(const models::PictureEncoder& encoder, int count) {
  Json config = encoder.config();
  config["frames"] = count;
  config["pool"] = "mean";
  return config;
}

}  // namespace vfm::columns
