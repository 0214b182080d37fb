// SPDX-License-Identifier: Apache-2.0
#include "generate/request/given_files.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <tuple>
#include <utility>

#include "base/counted.h"
#include "base/error.h"
#include "io/file.h"
#include "io/npy.h"
#include "io/safetensors.h"
#include "media/colour/scaler.h"
#include "media/decode/decoder.h"
#include "models/encoder/picture_resize.h"
#include "models/folder/load_tensors.h"

namespace vfm::generate {
namespace {

constexpr std::int64_t kMostTokens = 100000;  // of an embedding

void check_hash(GivenFile& file) {
  std::string hash = io::hash_file(file.path);
  if (file.xxh3 && *file.xxh3 != hash)
    fail("'{}' is not the file that the record was made from (xxh3 {}, not {})", file.path, hash,
         *file.xxh3);
  file.xxh3 = std::move(hash);
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

std::shared_ptr<const GivenFrames> read_condition(const GivenFiles& files, const ModelShape& shape,
                                                  const ClipRequest& request) {
  const int time_factor = shape.time_factor;
  // Latent frames, with one left to make.
  const bool two = request.frames > 1 + time_factor && !shape.takes_picture();
  const int asked = files.condition_frames.value_or(two ? 1 + time_factor : 1);
  if (asked < 1 || (asked - 1) % time_factor != 0)
    fail("{} of the condition cannot be used: give 1, {}, {}, ...", counted(asked, "frame"),
         1 + time_factor, 1 + 2 * time_factor);
  if (asked > 1 && shape.takes_picture())
    fail("{} of the condition cannot be used: the model begins with 1", counted(asked, "frame"));
  if (asked >= request.frames && files.condition_frames)
    fail("{} of the condition leave nothing to make: the clip has {}", counted(asked, "frame"),
         counted(request.frames, "frame"));
  media::Decoder decoder(files.condition.path);
  std::deque<media::Frame> frames = last_frames(decoder, static_cast<std::size_t>(asked));
  const int there = static_cast<int>(frames.size());
  if (files.condition_frames && there < asked)
    fail("'{}' has {}: {} of it cannot be used", files.condition.path, counted(there, "frame"),
         asked);
  const int used = 1 + (there - 1) / time_factor * time_factor;
  frames.erase(frames.begin(), frames.end() - used);

  media::ScaleOptions scale;
  scale.rotation = decoder.info().rotation;
  scale.mirror = decoder.info().mirror;
  auto given = std::make_shared<GivenFrames>();
  given->frames = used;
  const std::size_t plane = static_cast<std::size_t>(request.width) * request.height;
  given->pixels.resize(3 * plane * frames.size());
  media::Scaler scaler;
  media::RgbImage image;
  for (std::size_t t = 0; t < frames.size(); ++t) {
    scaler.to_rgb(frames[t], scale, image);
    // As the image processor of diffusers' pipelines does.
    const std::vector<std::uint8_t> pixels = models::resize_picture(
        {image.width, image.height, image.pixels}, request.width, request.height,
        models::Resample::lanczos, {0, 0, request.width, request.height});
    for (std::size_t i = 0; i < plane; ++i)
      for (std::size_t channel = 0; channel < 3; ++channel)
        given->pixels[(channel * frames.size() + t) * plane + i] =
            static_cast<float>(pixels[3 * i + channel]) / 127.5f - 1;
  }
  return given;
}

/// A tensor of a file.
struct Values {
  std::vector<std::int64_t> shape;
  std::vector<float> values;
};

/// A .npy file, or the only tensor of a .safetensors file. `what` is it: "noise".
Values read_values(const std::string& path, const char* what) {
  Values out;
  constexpr std::string_view kExtension = ".safetensors";
  if (path.ends_with(".npy")) {
    const std::string bytes = io::read_file(path);
    out.shape = io::parse_npy(bytes, path).shape;
    out.values = io::npy_floats(bytes, path);
  } else if (path.ends_with(kExtension)) {
    const std::string name = io::base_name(path);
    const io::SafetensorsSet set(io::dir_name(path),
                                 name.substr(0, name.size() - kExtension.size()));
    if (set.tensors().size() != 1)
      fail("'{}' has {} tensors: the {} must be the only one", path, set.tensors().size(), what);
    const Tensor tensor = models::read_floats(set.tensors().front());
    out.shape = set.tensors().front().shape;
    out.values.assign(tensor.floats().begin(), tensor.floats().end());
  } else {
    fail("'{}': the {} must be a .npy or .safetensors", path, what);
  }
  if (!std::ranges::all_of(out.values, [](float value) { return std::isfinite(value); }))
    fail("the {} '{}' has values that are not finite", what, path);
  return out;
}

/// As wide as the model's text is; diffusers has a leading 1, for the batch.
std::shared_ptr<const text::TokenEmbeddings> read_embedding(const std::string& path,
                                                            const ModelShape& shape) {
  Values read = read_values(path, "embedding");
  if (read.shape.size() == 3 && read.shape.front() == 1) read.shape.erase(read.shape.begin());
  if (read.shape.size() != 2 || read.shape[0] < 1 || read.shape[1] != shape.text_width)
    fail("the embedding '{}' is {}: must be tokens x {}, the width of the model's text", path,
         fmt::join(read.shape, " x "), shape.text_width);
  if (read.shape[0] > kMostTokens)
    fail("the embedding '{}' has {} tokens: at most {}", path, read.shape[0], kMostTokens);
  return std::make_shared<const text::TokenEmbeddings>(text::TokenEmbeddings{
      std::move(read.values), static_cast<int>(read.shape[0]), shape.text_width});
}

}  // namespace

void read_given_files(GivenFiles& files, const ModelShape& shape, ClipRequest& request) {
  if (!files.noise.path.empty()) {
    check_hash(files.noise);
    request.noise = std::make_shared<const std::vector<float>>(
        std::move(read_values(files.noise.path, "noise").values));
  }
  for (const auto& [file, embedding] :
       {std::tie(files.embedding, request.embedding),
        std::tie(files.negative_embedding, request.negative_embedding)}) {
    if (file.path.empty()) continue;
    shape.check_takes_embeddings();
    check_hash(file);
    embedding = read_embedding(file.path, shape);
  }
  if (files.condition.path.empty()) return;
  shape.check_takes_frames();
  check_hash(files.condition);
  request.given = read_condition(files, shape, request);
}

}  // namespace vfm::generate
