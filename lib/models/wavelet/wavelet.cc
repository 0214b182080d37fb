// Shape letters: T H W pixels, t h w latent, F time factor, S space factor, C channels.
// SPDX-License-Identifier: Apache-2.0
#include "models/wavelet/wavelet.h"

#include <algorithm>
#include <array>
#include <bit>
#include <tuple>

#include "base/error.h"
#include "models/tokenizer_family.h"
#include "models/wavelet/cdf97.h"
#include "ops/run.h"

namespace vfm::models {
namespace {

/// First half minus second half of span i, halved, on the straight line through its neighbours.
double predicted_detail(std::span<const double> means, std::size_t i) {
  const std::size_t last = means.size() - 1;
  if (last == 0) return 0;
  if (i == 0) return (means[0] - means[1]) / 4;
  if (i == last) return (means[last - 1] - means[last]) / 4;
  return (means[i - 1] - means[i + 1]) / 8;
}

/// The coefficients of a group of frames, coarse to fine, and back.
std::vector<double> split_group(std::vector<double> means) {
  std::vector<double> out(means.size());
  while (means.size() > 1) {
    std::vector<double> half(means.size() / 2);
    for (std::size_t i = 0; i < half.size(); ++i)
      half[i] = (means[2 * i] + means[2 * i + 1]) / 2;
    for (std::size_t i = 0; i < half.size(); ++i)
      out[half.size() + i] = (means[2 * i] - means[2 * i + 1]) / 2 - predicted_detail(half, i);
    means = std::move(half);
  }
  out[0] = means[0];
  return out;
}

std::vector<double> merge_group(const std::vector<double>& coefficients) {
  std::vector<double> means = {coefficients[0]};
  while (means.size() < coefficients.size()) {
    std::vector<double> fine;
    for (std::size_t i = 0; i < means.size(); ++i) {
      const double detail = coefficients[means.size() + i] + predicted_detail(means, i);
      fine.insert(fine.end(), {means[i] + detail, means[i] - detail});
    }
    means = std::move(fine);
  }
  return means;
}

/// The matrix of a linear map of F numbers.
template <class Map>
std::vector<float> matrix_of(Map map, int n) {
  std::vector<float> matrix(std::size_t(n) * n);
  for (int column = 0; column < n; ++column) {
    std::vector<double> unit(n, 0.0);
    unit[column] = 1;
    const std::vector<double> image = map(unit);
    for (int row = 0; row < n; ++row)
      matrix[std::size_t(row) * n + column] = static_cast<float>(image[row]);
  }
  return matrix;
}

// Rec. 601 luma weights and what follows from them: Cb = (B - Y) / 1.772, Cr = (R - Y) / 1.402.
constexpr float kRed = 0.299f, kGreen = 0.587f, kBlue = 0.114f, kCb = 1.772f, kCr = 1.402f;

void to_ycbcr(const float* r, const float* g, const float* b, std::size_t n, float* y, float* cb,
              float* cr) {
  for (std::size_t i = 0; i < n; ++i) {
    const float luma = kRed * r[i] + kGreen * g[i] + kBlue * b[i];
    y[i] = luma;
    cb[i] = (b[i] - luma) / kCb;
    cr[i] = (r[i] - luma) / kCr;
  }
}

void to_rgb(const float* y, const float* cb, const float* cr, std::size_t n, float* r, float* g,
            float* b) {
  for (std::size_t i = 0; i < n; ++i) {
    const float red = y[i] + kCr * cr[i], blue = y[i] + kCb * cb[i];
    r[i] = red;
    b[i] = blue;
    g[i] = (y[i] - kRed * red - kBlue * blue) / kGreen;
  }
}

int octaves(const WaveletTokenizer::Band& band, int levels) {
  return levels - band.level + (band.high_x ? 1 : 0) + (band.high_y ? 1 : 0);
}

/// All coefficients of a latent pixel in the documented order.
std::vector<WaveletTokenizer::Band> all_bands(int time, int levels) {
  std::vector<WaveletTokenizer::Band> bands;
  for (int colour = 0; colour < 3; ++colour)
    for (int row = 0; row < time; ++row) {
      bands.push_back({colour, row, levels, false, false, 0, 0});
      for (int level = levels; level >= 1; --level)
        for (const auto& [x, y] : {std::pair(false, true), {true, false}, {true, true}})
          for (int place = 0; place < 1 << 2 * (levels - level); ++place)
            bands.push_back({colour, row, level, x, y, place >> (levels - level),
                             place & ((1 << (levels - level)) - 1)});
    }
  const auto rank = [levels](const WaveletTokenizer::Band& band) {
    const int time_octaves = static_cast<int>(std::bit_width(static_cast<unsigned>(band.time)));
    const int cost = 20 * octaves(band, levels) + 16 * time_octaves + (band.colour > 0 ? 3 : 0);
    return std::tuple(cost, band.high_x && band.high_y, band.colour, band.time, band.high_x,
                      band.row, band.column);
  };
  std::stable_sort(bands.begin(), bands.end(),
                   [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
  return bands;
}

void check_sizes(std::size_t got, int channels, int frames, int height, int width,
                 const char* what) {
  if (frames < 1 || height < 1 || width < 1 ||
      got != std::size_t(channels) * frames * height * width)
    fail("{} of {} values are not {} x {} x {} x {}", what, got, channels, frames, height, width);
}

/// First frame and frame count of latent frame `t`.
std::pair<int, int> frames_of(int t, int time) {
  return t == 0 ? std::pair(0, 1) : std::pair(1 + (t - 1) * time, time);
}

}  // namespace

WaveletTokenizer::WaveletTokenizer(int channels, int time_factor, int space_factor, Device device,
                                   std::int64_t gpu_pixels)
    : time_(time_factor),
      space_(space_factor),
      levels_(0),
      device_(device),
      gpu_pixels_(gpu_pixels) {
  const auto power_of_two = [](int n, int least, int most) {
    return n >= least && n <= most && std::has_single_bit(static_cast<unsigned>(n));
  };
  if (!power_of_two(time_, 1, 16))
    fail_usage("time factor {}: builtin:wavelet has 1, 2, 4, 8 and 16", time_);
  if (!power_of_two(space_, 2, 16))
    fail_usage("space factor {}: builtin:wavelet has 2, 4, 8 and 16", space_);
  const int all = 3 * time_ * space_ * space_;
  if (channels < 1 || channels > all)
    fail_usage("{} channels: with time factor {} and space factor {} there are 1 to {}", channels,
               time_, space_, all);
  if (device_ == Device::cuda && !why_no_gpu().empty())
    fail_usage("builtin:wavelet cannot compute on a GPU: {}", why_no_gpu());
  levels_ = std::countr_zero(static_cast<unsigned>(space_));
  bands_ = all_bands(time_, levels_);
  bands_.resize(channels);
  time_analysis_ = matrix_of(split_group, time_);
  time_synthesis_ = matrix_of(merge_group, time_);
  row_used_.assign(3 * time_, false);
  for (const Band& band : bands_)
    row_used_[band.colour * time_ + band.time] = true;
}

TokenizerConfig WaveletTokenizer::config() const {
  return {.name = std::string(kWaveletFamily.name),
          .channels = channels(),
          .time_factor = time_,
          .space_factor = space_};
}

WaveletTokenizer::Place WaveletTokenizer::place_of(const Band& band, int height, int width) const {
  return {(band.high_y ? height >> band.level : 0) + band.row,
          (band.high_x ? width >> band.level : 0) + band.column, 1 << (levels_ - band.level)};
}

void WaveletTokenizer::gather(const float* plane, int height, int width, int colour, int row,
                              float* latent, std::size_t channel_stride) const {
  const int h = height / space_, w = width / space_;
  for (std::size_t c = 0; c < bands_.size(); ++c) {
    if (bands_[c].colour != colour || bands_[c].time != row) continue;
    const auto [top, left, step] = place_of(bands_[c], height, width);
    for (int y = 0; y < h; ++y)
      for (int x = 0; x < w; ++x)
        latent[c * channel_stride + std::size_t(y) * w + x] =
            plane[std::size_t(top + y * step) * width + left + x * step];
  }
}

void WaveletTokenizer::scatter(const float* latent, std::size_t channel_stride, int height,
                               int width, int colour, int row, float* plane) const {
  const int h = height / space_, w = width / space_;
  for (std::size_t c = 0; c < bands_.size(); ++c) {
    if (bands_[c].colour != colour || bands_[c].time != row) continue;
    const auto [top, left, step] = place_of(bands_[c], height, width);
    for (int y = 0; y < h; ++y)
      for (int x = 0; x < w; ++x)
        plane[std::size_t(top + y * step) * width + left + x * step] =
            latent[c * channel_stride + std::size_t(y) * w + x];
  }
}

WaveletTokenizer::CpuRoom::CpuRoom(const WaveletTokenizer& t, int frames, int height, int width,
                                   Device device) {
  const std::int64_t area = std::int64_t{height} * width * t.space_ * t.space_;
  colours = Tensor({std::int64_t{3} * (frames > 1 ? t.time_ : 1), area}, DType::f32, device);
  plane = Tensor({area}, DType::f32, device);
  transform = Tensor({PlaneTransform::kRoom * area}, DType::f32, device);
}

WaveletTokenizer::GpuRoom::GpuRoom(const WaveletTokenizer& t, int frames, int height, int width,
                                   Device device) {
  const auto floats = [&](std::int64_t count) { return Tensor({count}, DType::f32, device); };
  const std::int64_t latent_area = std::int64_t{height} * width;
  const std::int64_t area = latent_area * t.space_ * t.space_;
  const std::int64_t planes = std::ranges::count(t.row_used_, true);
  batch = std::clamp<std::int64_t>(t.gpu_pixels_ / (area * t.time_), 1, frames);
  const std::int64_t all = 1 + std::int64_t{frames - 1} * t.time_;
  video = floats(3 * std::min(all, batch * t.time_) * area);
  even = floats(batch * planes * area);
  odd = floats(batch * planes * area);
  latents = floats(t.channels() * frames * latent_area);
}

std::vector<float> WaveletTokenizer::count(int frames, int height, int width) const {
  if (layout_device(device_) == Device::cuda)
    GpuRoom(*this, frames, height, width, device_);
  else
    CpuRoom(*this, frames, height, width, device_);
  return {};
}

std::vector<float> WaveletTokenizer::encode(std::span<const float> pixels, int frames, int height,
                                            int width) const {
  check_sizes(pixels.size(), 3, frames, height, width, "pixels");
  if ((frames - 1) % time_ != 0 || height % space_ != 0 || width % space_ != 0)
    fail("{} frames of {} x {}: the tokenizer takes 1 + k * {} frames, sizes in multiples of {}",
         frames, width, height, time_, space_);
  return VFM_ASK(count(1 + (frames - 1) / time_, height / space_, width / space_), device_, encode,
                 *this, pixels, frames, height, width);
}

std::vector<float> WaveletTokenizer::cpu::encode(const WaveletTokenizer& t,
                                                 std::span<const float> pixels, int frames,
                                                 int height, int width) {
  const std::size_t plane = std::size_t(height) * width, area = plane / (t.space_ * t.space_);
  const int steps = 1 + (frames - 1) / t.time_;
  std::vector<float> latents(t.bands_.size() * steps * area);  // zero: the time details of frame 0
  const CpuRoom room(t, steps, height / t.space_, width / t.space_, Device::cpu);
  const std::span<float> ycbcr = room.colours.floats(), row = room.plane.floats();
  PlaneTransform transform(height, width, t.levels_, room.transform.data<float>());
  for (int k = 0; k < steps; ++k) {
    const auto [first, count] = frames_of(k, t.time_);
    const float* const group = pixels.data() + first * plane;
    const std::size_t n = count * plane, colour_stride = frames * plane;
    to_ycbcr(group, group + colour_stride, group + 2 * colour_stride, n, ycbcr.data(),
             ycbcr.data() + n, ycbcr.data() + 2 * n);
    for (int colour = 0; colour < 3; ++colour)
      for (int r = 0; r < count; ++r) {
        if (!t.row_used_[colour * t.time_ + r]) continue;
        std::fill(row.begin(), row.end(), 0.0f);
        for (int f = 0; f < count; ++f) {
          const float weight = count == 1 ? 1 : t.time_analysis_[r * t.time_ + f];
          const float* const frame = ycbcr.data() + colour * n + f * plane;
          for (std::size_t i = 0; i < plane; ++i)
            row[i] += weight * frame[i];
        }
        transform.analyse(row.data());
        t.gather(row.data(), height, width, colour, r, latents.data() + k * area, steps * area);
      }
  }
  return latents;
}

std::vector<float> WaveletTokenizer::decode(std::span<const float> latents, int frames, int height,
                                            int width) const {
  check_sizes(latents.size(), channels(), frames, height, width, "latents");
  return VFM_ASK(count(frames, height, width), device_, decode, *this, latents, frames, height,
                 width);
}

std::vector<float> WaveletTokenizer::cpu::decode(const WaveletTokenizer& t,
                                                 std::span<const float> latents, int frames,
                                                 int height, int width) {
  const int full_height = height * t.space_, full_width = width * t.space_;
  const std::size_t area = std::size_t(height) * width, plane = area * t.space_ * t.space_;
  const int full_frames = 1 + (frames - 1) * t.time_;
  std::vector<float> pixels(3 * full_frames * plane);
  const CpuRoom room(t, frames, height, width, Device::cpu);
  const std::span<float> ycbcr = room.colours.floats(), row = room.plane.floats();
  PlaneTransform transform(full_height, full_width, t.levels_, room.transform.data<float>());
  for (int k = 0; k < frames; ++k) {
    const auto [first, count] = frames_of(k, t.time_);
    const std::size_t n = count * plane;
    std::fill_n(ycbcr.begin(), 3 * n, 0.0f);
    for (int colour = 0; colour < 3; ++colour)
      for (int r = 0; r < count; ++r) {
        if (!t.row_used_[colour * t.time_ + r]) continue;
        std::fill(row.begin(), row.end(), 0.0f);
        t.scatter(latents.data() + k * area, frames * area, full_height, full_width, colour, r,
                  row.data());
        transform.synthesise(row.data());
        for (int f = 0; f < count; ++f) {
          const float weight = count == 1 ? 1 : t.time_synthesis_[f * t.time_ + r];
          float* const frame = ycbcr.data() + colour * n + f * plane;
          for (std::size_t i = 0; i < plane; ++i)
            frame[i] += weight * row[i];
        }
      }
    float* const group = pixels.data() + first * plane;
    const std::size_t colour_stride = full_frames * plane;
    to_rgb(ycbcr.data(), ycbcr.data() + n, ycbcr.data() + 2 * n, n, group, group + colour_stride,
           group + 2 * colour_stride);
  }
  return pixels;
}

}  // namespace vfm::models
