// SPDX-License-Identifier: Apache-2.0
#include "data/clip_pixels.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/philox.h"
#include "media/card_picture.h"
#include "media/decoder.h"
#include "media/scaler.h"

namespace vfm::data {
namespace {

struct Draw {  // of the place of a crop, each in [0, 1]
  double x = 0.5, y = 0.5, time = 0.5;
  bool mirror = false;
};

Draw draw(const std::string& key, const ClipOptions& options) {
  if (options.crop == CropMode::centre) return {};
  const Random random(options.seed, Purpose::crop, options.step, random_key(key));
  const std::uint64_t first = std::uint64_t{4} * options.again;
  return {random.uniform(first), random.uniform(first + 1), random.uniform(first + 2),
          random.uniform(first + 3) < options.flip};
}

/// Every frame's timestamp, and the end of the last.
std::vector<std::int64_t> all_pts(media::Decoder decoder, std::int64_t& end) {
  std::vector<std::int64_t> pts;
  media::Frame frame;
  while (decoder.next(frame)) {
    pts.push_back(frame.pts);
    end = frame.pts + std::max<std::int64_t>(1, frame.duration);
  }
  return pts;
}

/// A window of whole groups in `frames`, which stand for the whole clip.
std::vector<std::int64_t> window(const std::vector<std::int64_t>& frames, double place,
                                 const ClipOptions& options) {
  const auto available = static_cast<std::int64_t>(frames.size());
  const int count = whole_groups(available, options.frames, options.time_step);
  const std::int64_t spare = available - count;
  const auto first =
      std::min(spare, options.crop == CropMode::centre
                          ? spare / 2
                          : static_cast<std::int64_t>(place * static_cast<double>(spare + 1)));
  return {frames.begin() + first, frames.begin() + first + count};
}

std::vector<std::int64_t> numbers(std::int64_t n) {
  std::vector<std::int64_t> out(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<std::int64_t>(i);
  return out;
}

/// Side of the square in a picture whose shorter side is `shorter`.
int square_side(int shorter, const ClipOptions& options) {
  const int resized = std::max(
      options.square, options.shorter_side > 0 ? std::min(shorter, options.shorter_side) : shorter);
  const double side = static_cast<double>(options.square) * shorter / resized;
  return std::clamp(static_cast<int>(std::lround(side)), 1, shorter);
}

/// The crop of the picture's shape to the bucket's, or of a square, at even places: subsampled
/// chroma has no others.
std::array<int, 4> crop_of(int width, int height, const Bucket& bucket, const Draw& place,
                           const ClipOptions& options) {
  const double target = static_cast<double>(bucket.width) / bucket.height;
  int w = width, h = height;
  if (options.square > 0)
    w = h = square_side(std::min(width, height), options);
  else if (width > height * target)
    w = std::max(1, static_cast<int>(std::lround(height * target)));
  else
    h = std::max(1, static_cast<int>(std::lround(width / target)));
  const auto at = [](int spare, double where) { return static_cast<int>(spare * where) & ~1; };
  return {at(width - w, place.x), at(height - h, place.y), w, h};
}

/// The n-th frame of `out` from an image, perhaps mirrored left to right.
void put(const media::RgbImage& image, std::size_t n, bool mirror, ClipPixels& out) {
  const auto width = static_cast<std::size_t>(out.width);
  const std::size_t plane = std::size_t(out.height) * width;
  for (std::size_t colour = 0; colour < 3; ++colour) {
    float* to = out.pixels.data() + (colour * out.frames + n) * plane;
    for (std::size_t i = 0; i < plane; ++i)
      to[i] = static_cast<float>(image.pixels[3 * i + colour]) / 127.5f - 1;
    for (std::size_t row = 0; mirror && row < plane; row += width)
      std::reverse(to + row, to + row + width);
  }
}

/// The rate of evenly taken frames: the container's word if the timestamps agree to 1 %, else
/// theirs.
double measured_rate(const media::StreamInfo& info, std::int64_t first, std::int64_t last,
                     std::size_t frames) {
  const double named = info.frame_rate.num > 0 ? info.frame_rate.value() : 0;
  if (frames < 2 || last <= first) return named;
  const double measured =
      static_cast<double>(frames - 1) * static_cast<double>(info.time_base.den) /
      (static_cast<double>(last - first) * static_cast<double>(info.time_base.num));
  return std::abs(measured - named) <= 0.01 * measured ? named : measured;
}

class ClipReader {
 public:
  ClipReader(std::string_view bytes, const std::string& name, const std::string& key,
             const ClipOptions& options, ClipCanvas* canvas)
      : bytes_(bytes), name_(name), options_(options), draw_(draw(key, options)), canvas_(canvas) {}

  ClipPixels read() {
    media::Decoder decoder = open();
    info_ = decoder.info();
    if (info_.image) return take(std::move(decoder), {0});
    bool resampled = false;
    std::vector<std::int64_t> frames;
    if (options_.fps.num > 0) {
      std::int64_t end = 0;
      const std::vector<std::int64_t> pts = all_pts(open(), end);
      frames = sample_times(pts, end, info_.time_base, options_.fps);
      resampled = !frames.empty();
      if (!resampled) frames = numbers(static_cast<std::int64_t>(pts.size()));
    } else {
      frames = numbers(info_.frames);
    }
    ClipPixels out;
    if (!frames.empty()) out = take(std::move(decoder), window(frames, draw_.time, options_));
    if (out.frames == 0) {
      // The container promised more than decodes, or nothing at all: count.
      std::int64_t end = 0;
      const auto count = static_cast<std::int64_t>(all_pts(open(), end).size());
      if (count == 0) fail("'{}' has no frame that can be decoded", name_);
      out = take(open(), window(numbers(count), draw_.time, options_));
      if (out.frames == 0) fail("'{}' does not decode the same way twice", name_);
    }
    if (resampled && out.frames > 1) out.fps = options_.fps.value();
    return out;
  }

 private:
  media::Decoder open() const {
    return media::Decoder(bytes_, name_,
                          {.use = media::FrameUse::glance,
                           .hardware = options_.hardware,
                           .on_card = canvas_ && canvas_->draws()});
  }

  Bucket bucket_of_picture() const {
    if (options_.square > 0) return {options_.square, options_.square};
    if (options_.bucket.width > 0) return options_.bucket;
    return bucket_of(info_.display_width, info_.display_height, options_.size, options_.multiple);
  }

  /// The chosen frames as pixels; no frames at all if the clip ends before the last of them.
  ClipPixels take(media::Decoder decoder, const std::vector<std::int64_t>& chosen) const {
    const Bucket bucket = bucket_of_picture();
    ClipPixels out;
    out.frames = static_cast<int>(chosen.size());
    out.height = bucket.height;
    out.width = bucket.width;
    out.first_frame = chosen.front();
    out.crop = crop_of(info_.display_width, info_.display_height, bucket, draw_, options_);
    if (canvas_)
      canvas_->begin(out.frames, out.height, out.width);
    else
      out.pixels.resize(std::size_t(3) * out.frames * out.height * out.width);
    const double w = info_.display_width, h = info_.display_height;
    const media::ScaleOptions scale{.rotation = info_.rotation,
                                    .mirror = info_.mirror,
                                    .crop_x = out.crop[0] / w,
                                    .crop_y = out.crop[1] / h,
                                    .crop_width = out.crop[2] / w,
                                    .crop_height = out.crop[3] / h,
                                    .width = bucket.width,
                                    .height = bucket.height};
    media::Scaler scaler;
    media::RgbImage image;
    media::Frame frame;
    std::size_t n = 0;
    std::int64_t first = 0;
    for (std::int64_t i = 0; n < chosen.size(); ++i) {
      if (!decoder.next(frame)) return {};
      if (chosen[n] != i) continue;
      if (!canvas_ || !frame.card ||
          !canvas_->draw(frame, scale, draw_.mirror, static_cast<int>(n))) {
        scaler.to_rgb(media::in_system_memory(frame), scale, image);
        if (canvas_)
          canvas_->put(image, draw_.mirror, static_cast<int>(n));
        else
          put(image, n, draw_.mirror, out);
      }
      if (n++ == 0) first = frame.pts;
    }
    if (out.frames > 1) out.fps = measured_rate(info_, first, frame.pts, chosen.size());
    return out;
  }

  std::string_view bytes_;
  std::string name_;
  const ClipOptions& options_;
  Draw draw_;
  ClipCanvas* canvas_;
  media::StreamInfo info_;
};

}  // namespace

ClipPixels clip_pixels(std::string_view bytes, const std::string& name, const std::string& key,
                       const ClipOptions& options, ClipCanvas* canvas) {
  return ClipReader(bytes, name, key, options, canvas).read();
}

}  // namespace vfm::data
