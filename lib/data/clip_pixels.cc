// SPDX-License-Identifier: Apache-2.0
#include "data/clip_pixels.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <utility>

#include "base/error.h"
#include "base/philox.h"
#include "media/colour/scaler.h"
#include "media/decode/decoder.h"
#include "media/decode/gpu_picture.h"

namespace vfm::data {
namespace {

struct Draw {  // of the place of a crop, each in [0, 1]
  double x = 0.5, y = 0.5, time = 0.5;
  bool mirror = false;
};

Draw draw(const std::string& key, const PixelOptions& options) {
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

std::vector<std::int64_t> numbers(std::int64_t n) {
  std::vector<std::int64_t> out(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<std::int64_t>(i);
  return out;
}

/// Side of the square in a picture whose shorter side is `shorter`.
int square_side(int shorter, const PixelOptions& options) {
  const int resized = std::max(
      options.square, options.shorter_side > 0 ? std::min(shorter, options.shorter_side) : shorter);
  const double side = static_cast<double>(options.square) * shorter / resized;
  return std::clamp(static_cast<int>(std::lround(side)), 1, shorter);
}

/// The crop of the picture's shape to the bucket's, or of a square, at even places: subsampled
/// chroma has no others.
std::array<int, 4> crop_of(int width, int height, const Bucket& bucket, const Draw& place,
                           const PixelOptions& options) {
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

/// A window that is being filled.
struct OpenWindow {
  ClipPixels out;
  std::unique_ptr<ClipCanvas> canvas;
  int filled = 0;
  std::int64_t first_pts = 0;
};

class ClipReader {
 public:
  ClipReader(std::string_view bytes, const std::string& name, const std::string& key,
             const PixelOptions& options, const TakeWindow& take, const MakeCanvas& make_canvas)
      : bytes_(bytes),
        name_(name),
        options_(options),
        draw_(draw(key, options)),
        take_(take),
        make_canvas_(make_canvas),
        on_gpu_(make_canvas && make_canvas()->draws()) {}

  FrameCount read() {
    media::Decoder decoder = open();
    info_ = decoder.info();
    if (info_.image) {
      if (!read_frames(decoder, {0})) fail("'{}' cannot be decoded", name_);
      return {1, 1, 0, 0, 0};
    }
    if (options_.fps.num > 0) {
      std::int64_t end = 0;
      const std::vector<std::int64_t> pts = all_pts(open(), end);
      const auto all = static_cast<std::int64_t>(pts.size());
      std::vector<std::int64_t> frames = sample_times(pts, end, info_.time_base, options_.fps);
      resampled_ = !frames.empty();
      if (!resampled_) frames = numbers(all);
      if (frames.empty()) fail("'{}' has no frame that can be decoded", name_);
      if (!read_frames(decoder, frames)) fail("'{}' does not decode the same way twice", name_);
      return count_frames(all, static_cast<std::int64_t>(frames.size()), rule());
    }
    std::int64_t count = info_.frames;
    if (count < 1 || !read_frames(decoder, numbers(count))) {
      // The container promised more than decodes, or nothing at all: count.
      std::int64_t end = 0;
      count = static_cast<std::int64_t>(all_pts(open(), end).size());
      if (count == 0) fail("'{}' has no frame that can be decoded", name_);
      media::Decoder again = open();
      if (!read_frames(again, numbers(count)))
        fail("'{}' does not decode the same way twice", name_);
    }
    return count_frames(count, count, rule());
  }

 private:
  media::Decoder open() const {
    return media::Decoder(
        bytes_, name_,
        {.use = media::FrameUse::glance, .hardware = options_.hardware, .on_gpu = on_gpu_});
  }

  WindowRule rule() const {
    return {options_.frames, options_.time_step, options_.windows, options_.overlap};
  }

  Bucket bucket_of_picture() const {
    if (options_.square > 0) return {options_.square, options_.square};
    if (options_.bucket.width > 0) return options_.bucket;
    return bucket_of(info_.display_width, info_.display_height, options_.size, options_.multiple);
  }

  /// The windows of `frames`, which stand for the whole clip, without their pixels. Throws Error
  /// where fewer frames are there than were planned.
  std::vector<ClipPixels> windows_of(const std::vector<std::int64_t>& frames) const {
    const auto available = static_cast<std::int64_t>(frames.size());
    const WindowPlan plan =
        plan_windows(options_.planned > 0 ? options_.planned : available, rule());
    if (plan.span() > available)
      fail("'{}' has {} frames, and by the dataset's index {}", name_, available, options_.planned);
    std::optional<double> place;
    if (options_.crop == CropMode::random) place = draw_.time;
    const Bucket bucket = bucket_of_picture();
    std::vector<ClipPixels> windows;
    for (std::int64_t i = 0; i < plan.windows; ++i) {
      if (options_.only >= 0 && i != options_.only) continue;
      ClipPixels& window = windows.emplace_back();
      window.window = i;
      window.windows = plan.windows;
      window.frames = plan.frames_of(i);
      window.height = bucket.height;
      window.width = bucket.width;
      window.crop = crop_of(info_.display_width, info_.display_height, bucket, draw_, options_);
      window.first_frame = plan.first_of(i, available, place);  // of `frames`
    }
    if (windows.empty()) fail("'{}' has no window {}", name_, options_.only);
    return windows;
  }

  /// False: the clip ends before the last of the frames that are wanted.
  bool read_frames(media::Decoder& decoder, const std::vector<std::int64_t>& frames) {
    std::vector<ClipPixels> windows = windows_of(frames);
    std::size_t next = 0;
    auto at = static_cast<std::size_t>(windows.front().first_frame);
    std::int64_t first_pts = 0;
    media::Frame frame;
    for (std::int64_t i = 0; next < windows.size() || !open_.empty(); ++i) {
      if (!decoder.next(frame)) {
        open_.clear();
        return false;
      }
      if (i == 0) first_pts = frame.pts;
      for (; at < frames.size() && frames[at] == i; ++at) {
        if (next < windows.size() && windows[next].first_frame == static_cast<std::int64_t>(at)) {
          windows[next].first_frame = i;
          begin(std::move(windows[next++]), frame.pts);
        }
        add(frame, first_pts);
        // Between windows frames are passed over.
        if (open_.empty() && next < windows.size())
          at = static_cast<std::size_t>(windows[next].first_frame) - 1;
      }
    }
    return true;
  }

  void begin(ClipPixels window, std::int64_t pts) {
    OpenWindow& open = open_.emplace_back();
    open.out = std::move(window);
    open.first_pts = pts;
    if (make_canvas_) {
      open.canvas = make_canvas_();
      open.canvas->begin(open.out.frames, open.out.height, open.out.width);
    } else {
      open.out.pixels.resize(std::size_t(3) * open.out.frames * open.out.height * open.out.width);
    }
  }

  /// A frame to all that are open, of which one may be full then.
  void add(const media::Frame& frame, std::int64_t clip_pts) {
    bool scaled = false;
    for (OpenWindow& open : open_) {
      const media::ScaleOptions scale = scale_of(open.out);
      const int n = open.filled++;
      if (open.canvas && frame.gpu && open.canvas->draw(frame, scale, draw_.mirror, n)) continue;
      if (!std::exchange(scaled, true))
        scaler_.to_rgb(media::in_system_memory(frame), scale, image_);
      if (open.canvas)
        open.canvas->put(image_, draw_.mirror, n);
      else
        put(image_, static_cast<std::size_t>(n), draw_.mirror, open.out);
    }
    if (open_.empty() || open_.front().filled < open_.front().out.frames) return;
    OpenWindow full = std::move(open_.front());
    open_.pop_front();
    ClipPixels& out = full.out;
    if (!info_.image) {
      const double tick = info_.time_base.value();
      out.begin = static_cast<double>(full.first_pts - clip_pts) * tick;
      out.end =
          static_cast<double>(frame.pts + std::max<std::int64_t>(1, frame.duration) - clip_pts) *
          tick;
    }
    if (out.frames > 1)
      out.fps = resampled_ ? options_.fps.value()
                           : measured_rate(info_, full.first_pts, frame.pts,
                                           static_cast<std::size_t>(out.frames));
    take_(std::move(out), full.canvas.get());
  }

  media::ScaleOptions scale_of(const ClipPixels& window) const {
    const double w = info_.display_width, h = info_.display_height;
    return {.rotation = info_.rotation,
            .mirror = info_.mirror,
            .crop_x = window.crop[0] / w,
            .crop_y = window.crop[1] / h,
            .crop_width = window.crop[2] / w,
            .crop_height = window.crop[3] / h,
            .width = window.width,
            .height = window.height};
  }

  std::string_view bytes_;
  std::string name_;
  const PixelOptions& options_;
  Draw draw_;
  const TakeWindow& take_;
  const MakeCanvas& make_canvas_;
  bool on_gpu_;
  bool resampled_ = false;
  media::StreamInfo info_;
  std::deque<OpenWindow> open_;  // in order of their beginnings, and ends
  media::Scaler scaler_;
  media::RgbImage image_;
};

}  // namespace

FrameCount read_windows(std::string_view bytes, const std::string& name, const std::string& key,
                        const PixelOptions& options, const TakeWindow& take,
                        const MakeCanvas& make_canvas) {
  return ClipReader(bytes, name, key, options, take, make_canvas).read();
}

ClipPixels clip_pixels(std::string_view bytes, const std::string& name, const std::string& key,
                       const PixelOptions& options) {
  PixelOptions one = options;
  one.only = std::max(0, one.only);
  ClipPixels first;
  read_windows(bytes, name, key, one,
               [&](ClipPixels window, const ClipCanvas*) { first = std::move(window); });
  return first;
}

}  // namespace vfm::data
