// SPDX-License-Identifier: Apache-2.0
#include "clip/cut/images.h"

#include <fmt/core.h>

#include <optional>

#include "base/hash.h"
#include "base/json.h"
#include "base/rounding.h"
#include "clip/cut/encoder.h"
#include "clip/cut/measures.h"
#include "clip/source.h"
#include "clip/store/names.h"
#include "curate/measures/clip_meter.h"
#include "io/file.h"
#include "media/decode/decoder.h"

namespace vfm::clip {
namespace {

/// Maximum size of a picture's file, which is read whole. Other tools have the same limit by
/// default (--max-member).
constexpr std::uint64_t kMostPicture = std::uint64_t{1} << 30;

Json image_facts(std::string_view bytes, const std::string& path) {
  media::Decoder decoder(bytes, path);
  media::Frame frame;
  if (!decoder.next(frame)) fail("'{}' holds no picture", path);
  const media::StreamInfo& info = decoder.info();
  if (!info.image)
    fail("'{}' has the name of a picture, but is a video ({}); rename it", path, info.codec);
  media::Frame end;
  decoder.next(end);  // damage may be noticed only at the end of the file
  if (decoder.corrupt() > 0) fail("'{}' is a damaged picture", path);
  curate::FrameFeatures features;
  curate::compute_features(frame, features);
  curate::ClipMeter meter;
  meter.add(curate::measure_frame(features, {}, 1), features.picture, frame);
  const curate::ClipMeasures m = meter.result(0);
  Json j;
  j["width"] = info.display_width;
  j["height"] = info.display_height;
  j["frames"] = 1;
  j["seconds"] = 0;
  j["codec"] = info.codec;
  j["bytes"] = bytes.size();
  j["audio"] = nullptr;
  j["motion"] = 0;
  j["motion_per_second"] = 0;
  j["brightness"] = six_digits(m.brightness);
  j["contrast"] = six_digits(m.contrast);
  j["saturation"] = six_digits(m.saturation);
  j["sharpness"] = six_digits(m.sharpness);
  j["black"] = six_digits(m.black);
  j["frozen"] = 0;
  for (std::size_t i = 0; i < m.colors.size(); ++i) {
    j[fmt::format("color_{}", i + 1)] = m.colors[i].rgb;
    j[fmt::format("color_{}_share", i + 1)] = six_digits(m.colors[i].share);
  }
  add_picture_measures(j, m);
  add_boxes(j, m.pictures, std::nullopt, info);
  add_sound_measures(j, std::nullopt);
  j["shots"] = 1;
  return j;
}

}  // namespace

std::string image_key(const std::string& path, const std::string& hash, bool readable) {
  const std::string key = hash_hex("image " + hash);
  return readable ? readable_key(path, key) : key;
}

shard::Sample image_sample(const std::string& path, const std::string& hash, bool readable) {
  try {
    std::string bytes = io::read_file(path, kMostPicture);
    const std::string key = image_key(path, hash, readable);
    Json facts = {{"key", key}, {"media", "image"}, {"source", path}, {"source_hash", hash}};
    facts.update(image_facts(bytes, path));
    return {key, {{image_extension(path), std::move(bytes)}, {"json", dump_json(facts)}}};
  } catch (const Error& error) {
    throw ImageError(error.what(), error.cause());
  }
}

}  // namespace vfm::clip
