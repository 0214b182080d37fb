// SPDX-License-Identifier: Apache-2.0
#include "jobs/given_files.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <utility>

#include "base/error.h"
#include "io/file.h"
#include "io/npy.h"
#include "io/safetensors.h"
#include "media/decoder.h"
#include "media/scaler.h"
#include "models/load_tensors.h"

namespace vfm::jobs {
namespace {

void check_hash(std::optional<std::string>& expected, const std::string& path) {
  const std::string hash = io::hash_file(path);
  if (expected && *expected != hash)
    fail("'{}' is not the file that the record was made from (xxh3 {}, not {})", path, hash,
         *expected);
  expected = hash;
}

/// The last frames of a video, at most `most`.
std::deque<media::Frame> last_frames(media::Decoder& decoder, std::size_t most) {
  std::deque<media::Frame> frames;
  media::Frame frame;
  while (decoder.next(frame)) {
    frames.push_back(frame);
    if (frames.size() > most) frames.pop_front();
  }
  return frames;
}

std::shared_ptr<const generate::GivenFrames> read_condition(const ClipOrder& order,
                                                            int time_factor) {
  const generate::ClipRequest& request = order.request;
  const bool two = request.frames > 1 + time_factor;  // latent frames, with one left to make
  const int asked = order.condition_frames.value_or(two ? 1 + time_factor : 1);
  if (asked < 1 || (asked - 1) % time_factor != 0)
    fail("{} condition frames: must be 1, {}, {}, ...", asked, 1 + time_factor,
         1 + 2 * time_factor);
  if (asked >= request.frames && order.condition_frames)
    fail("{} condition frames leave nothing to make of {} frames", asked, request.frames);
  media::Decoder decoder(order.condition);
  std::deque<media::Frame> frames = last_frames(decoder, static_cast<std::size_t>(asked));
  const int there = static_cast<int>(frames.size());
  if (order.condition_frames && there < asked)
    fail("'{}' has {} frames, fewer than the {} condition frames", order.condition, there, asked);
  const int used = 1 + (there - 1) / time_factor * time_factor;
  frames.erase(frames.begin(), frames.end() - used);

  media::ScaleOptions scale;
  scale.rotation = decoder.info().rotation;
  scale.mirror = decoder.info().mirror;
  scale.width = request.width;
  scale.height = request.height;
  auto given = std::make_shared<generate::GivenFrames>();
  given->frames = used;
  const std::size_t plane = static_cast<std::size_t>(request.width) * request.height;
  given->pixels.resize(3 * plane * frames.size());
  media::Scaler scaler;
  media::RgbImage image;
  for (std::size_t t = 0; t < frames.size(); ++t) {
    scaler.to_rgb(frames[t], scale, image);
    for (std::size_t i = 0; i < plane; ++i)
      for (std::size_t channel = 0; channel < 3; ++channel)
        given->pixels[(channel * frames.size() + t) * plane + i] =
            static_cast<float>(image.pixels[3 * i + channel]) / 127.5f - 1;
  }
  return given;
}

std::vector<float> read_noise(const std::string& path) {
  if (path.ends_with(".npy")) return io::npy_floats(io::read_file(path), path);
  constexpr std::string_view kExtension = ".safetensors";
  if (!path.ends_with(kExtension)) fail("'{}': the noise must be a .npy or .safetensors", path);
  const std::string name = io::base_name(path);
  const io::SafetensorsSet set(io::dir_name(path), name.substr(0, name.size() - kExtension.size()));
  if (set.tensors().size() != 1)
    fail("'{}' has {} tensors: the noise must be the only one", path, set.tensors().size());
  const std::span<const float> values = models::read_floats(set.tensors().front()).floats();
  return {values.begin(), values.end()};
}

}  // namespace

void read_given_files(ClipOrder& order, const generate::ModelShape& shape) {
  if (!order.noise.empty()) {
    check_hash(order.noise_xxh3, order.noise);
    std::vector<float> noise = read_noise(order.noise);
    if (!std::ranges::all_of(noise, [](float value) { return std::isfinite(value); }))
      fail("the noise '{}' has values that are not finite", order.noise);
    order.request.noise = std::make_shared<const std::vector<float>>(std::move(noise));
  }
  if (order.condition.empty()) return;
  shape.check_takes_frames();
  check_hash(order.condition_xxh3, order.condition);
  order.request.given = read_condition(order, shape.time_factor);
}

}  // namespace vfm::jobs
