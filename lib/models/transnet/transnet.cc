// SPDX-License-Identifier: Apache-2.0
#include "models/transnet/transnet.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <exception>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/one_thread.h"
#include "base/stop.h"
#include "ops/conv/conv2d.h"
#include "ops/matmul/gemm.h"

namespace vfm::models {
namespace {

constexpr std::int64_t kColours = 512;  // three bits of each of R, G, B

/// One vector of length 1 a row; zeros stay.
void normalise_rows(const Tensor& rows) {
  const std::int64_t width = rows.size(1);
  for (std::int64_t r = 0; r < rows.size(0); ++r) {
    float* row = rows.data<float>() + r * width;
    double sum = 0;
    for (std::int64_t i = 0; i < width; ++i)
      sum += double{row[i]} * row[i];
    const auto factor = static_cast<float>(1 / std::max(std::sqrt(sum), 1e-12));
    for (std::int64_t i = 0; i < width; ++i)
      row[i] *= factor;
  }
}

/// x [N, I]: x W^T + b, [N, O].
Tensor dense(const Tensor& x, const TransNetLinear& layer, bool relu) {
  const std::int64_t n = x.size(0), in = x.size(1), out = layer.weight.size(0);
  const Tensor y({n, out});
  ops::gemm(Device::cpu, n, out, in, {x.raw(), DType::f32, in, false},
            {layer.weight.raw(), DType::f32, in, true}, y.raw(), DType::f32, out, false);
  const float* bias = layer.bias.data<float>();
  for (std::int64_t r = 0; r < n; ++r)
    for (std::int64_t i = 0; i < out; ++i) {
      float& value = y.data<float>()[r * out + i];
      value += bias[i];
      if (relu && value < 0) value = 0;  // NaN stays
    }
  return y;
}

/// Of vectors of length 1, one a frame: of each frame its likeness to the 50 before it, itself and
/// the 50 after it, 0 where there are none. [T, 101]
Tensor likeness_band(const Tensor& vectors) {
  constexpr std::int64_t kBand = TransNetWeights::kBandWidth, kReach = kBand / 2;
  const std::int64_t count = vectors.size(0), width = vectors.size(1);
  const Tensor all({count, count}), band = Tensor::zeros({count, kBand});
  ops::gemm(Device::cpu, count, count, width, {vectors.raw(), DType::f32, width, false},
            {vectors.raw(), DType::f32, width, true}, all.raw(), DType::f32, count, false);
  for (std::int64_t t = 0; t < count; ++t) {
    const std::int64_t begin = std::max<std::int64_t>(0, t - kReach);
    const std::int64_t end = std::min(count, t + kReach + 1);
    std::copy(all.data<float>() + t * count + begin, all.data<float>() + t * count + end,
              band.data<float>() + t * kBand + begin - (t - kReach));
  }
  return band;
}

/// How many of a frame's pixels have each colour, as a vector of length 1. [T, 512]
Tensor colour_counts(std::span<const std::uint8_t> frames, std::int64_t count) {
  const Tensor counts = Tensor::zeros({count, kColours});
  const std::uint8_t* pixel = frames.data();
  for (std::int64_t t = 0; t < count; ++t) {
    float* row = counts.data<float>() + t * kColours;
    for (int i = 0; i < TransNet::kWidth * TransNet::kHeight; ++i, pixel += 3)
      row[(pixel[0] >> 5) * 64 + (pixel[1] >> 5) * 8 + (pixel[2] >> 5)] += 1;
  }
  normalise_rows(counts);
  return counts;
}

/// Channels last: [T, H, W, C].
struct FrameMaps {
  std::int64_t frames = 0, height = 0, width = 0, channels = 0;
  Tensor values;

  FrameMaps(std::int64_t t, std::int64_t h, std::int64_t w, std::int64_t c)
      : frames(t), height(h), width(w), channels(c), values({t, h, w, c}) {}
  std::int64_t pixels() const { return height * width; }
  const float* row(std::int64_t t, std::int64_t y) const {
    return values.data<float>() + (t * height + y) * width * channels;
  }
  float* row(std::int64_t t, std::int64_t y) {
    return const_cast<float*>(std::as_const(*this).row(t, y));
  }
};

/// What a branch makes of x, normed: [T or more, H, W, F].
Tensor convolve(const TransNetCell& cell, const TransNetBranch& branch, const FrameMaps& x) {
  const std::int64_t f = cell.filters, d = branch.dilation;
  // Frames that are d apart are the rows of a picture that is d frames wide, so a convolution over
  // them is one in space, of whole rows: those that are missing are zero, as all beyond the edges.
  const std::int64_t rows = (x.frames + d - 1) / d;
  const Tensor between({rows * d, x.height, x.width, 2 * f});
  const std::int64_t each = x.pixels() * 2 * f;
  std::fill(between.data<float>() + x.frames * each, between.data<float>() + rows * d * each, 0.f);
  ops::conv2d(Device::cpu,
              {.images = x.frames,
               .height = x.height,
               .width = x.width,
               .in = cell.in,
               .out = 2 * f,
               .kernel_height = 3,
               .kernel_width = 3,
               .pad_top = 1,
               .pad_bottom = 1,
               .pad_left = 1,
               .pad_right = 1,
               .x_step = x.pixels() * cell.in},
              DType::f32, x.values.raw(), branch.space.raw(), nullptr, nullptr, between.raw());
  const Tensor y({rows * d, x.height, x.width, f});
  ops::conv2d(Device::cpu,
              {.images = 1,
               .height = rows,
               .width = d * x.pixels(),
               .in = 2 * f,
               .out = f,
               .kernel_height = 3,
               .pad_top = 1,
               .pad_bottom = 1,
               .x_step = rows * d * each},
              DType::f32, between.raw(), branch.time.raw(), branch.bias.data<float>(), nullptr,
              y.raw());
  return y;
}

/// How many threads a call may use: as many as the calls under way leave each other.
class Share {
 public:
  Share() : calls_(++under_way) {}
  ~Share() { --under_way; }
  Share(const Share&) = delete;
  Share& operator=(const Share&) = delete;
  int threads(int most) const {
    const auto all = static_cast<int>(std::thread::hardware_concurrency());
    return std::clamp(all / calls_, 1, most);
  }

 private:
  static inline std::atomic<int> under_way = 0;
  int calls_;
};

/// Calls use(b, result of branch b) for each of a cell's branches.
template <class Use>
void each_branch(const TransNetCell& cell, const FrameMaps& x, const Share& share, Use use) {
  constexpr int kBranches = 4;
  std::array<std::exception_ptr, kBranches> errors;
#pragma omp parallel for schedule(dynamic, 1) num_threads(share.threads(kBranches))
  for (int b = 0; b < kBranches; ++b) {
    try {
      const OneThread one;
      use(b, convolve(cell, cell.branches[static_cast<std::size_t>(b)], x));
    } catch (...) {
      errors[static_cast<std::size_t>(b)] = std::current_exception();
    }
  }
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

/// A stack: cell, ReLU, cell, ReLU, plus what came out of the first; and 2 x 2 pixels become their
/// mean.
FrameMaps run_stack(const std::array<TransNetCell, 2>& cells, const FrameMaps& x,
                    const Share& share) {
  const std::int64_t f = cells[0].filters;
  FrameMaps first(x.frames, x.height, x.width, 4 * f);
  each_branch(cells[0], x, share, [&](int b, const Tensor& part) {
    float* to = first.values.data<float>() + b * f;
    const float* from = part.data<float>();
    for (std::int64_t i = 0; i < x.frames * x.pixels(); ++i, to += 4 * f, from += f)
      for (std::int64_t c = 0; c < f; ++c)
        to[c] = from[c] < 0 ? 0 : from[c];
  });
  FrameMaps y(x.frames, x.height / 2, x.width / 2, 4 * f);
  each_branch(cells[1], first, share, [&](int b, const Tensor& part) {
    for (std::int64_t t = 0; t < y.frames; ++t)
      for (std::int64_t row = 0; row < y.height; ++row)
        for (std::int64_t column = 0; column < y.width; ++column) {
          float* to = y.row(t, row) + column * 4 * f + b * f;
          std::fill(to, to + f, 0.f);
          for (std::int64_t p = 0; p < 4; ++p) {
            const std::int64_t above = 2 * row + p / 2, left = 2 * column + p % 2;
            const float* a = first.row(t, above) + left * 4 * f + b * f;
            const float* from = part.data<float>() + ((t * x.height + above) * x.width + left) * f;
            for (std::int64_t c = 0; c < f; ++c)
              to[c] += 0.25f * ((from[c] < 0 ? 0 : from[c]) + a[c]);
          }
        }
  });
  return y;
}

/// Means over the pixels of each frame, into columns [begin, begin + channels) of `means`.
void take_means(const FrameMaps& x, const Tensor& means, std::int64_t begin) {
  for (std::int64_t t = 0; t < x.frames; ++t) {
    float* to = means.data<float>() + t * means.size(1) + begin;
    std::fill(to, to + x.channels, 0.f);
    const float* from = x.row(t, 0);
    for (std::int64_t p = 0; p < x.pixels(); ++p, from += x.channels)
      for (std::int64_t c = 0; c < x.channels; ++c)
        to[c] += from[c];
    for (std::int64_t c = 0; c < x.channels; ++c)
      to[c] /= static_cast<float>(x.pixels());
  }
}

/// Rows [T, A], [T, B], [T, C] side by side.
Tensor side_by_side(const std::array<Tensor, 3>& parts) {
  const std::int64_t count = parts[0].size(0);
  std::int64_t width = 0, begin = 0;
  for (const Tensor& part : parts)
    width += part.size(1);
  const Tensor all({count, width});
  for (const Tensor& part : parts) {
    for (std::int64_t t = 0; t < count; ++t)
      std::memcpy(all.data<float>() + t * width + begin, part.data<float>() + t * part.size(1),
                  static_cast<std::size_t>(part.size(1)) * sizeof(float));
    begin += part.size(1);
  }
  return all;
}

}  // namespace

std::vector<float> TransNet::probabilities(std::span<const std::uint8_t> frames) const {
  if (frames.size() % kFrameBytes != 0)
    fail("{} bytes are not frames of {}x{}", frames.size(), kWidth, kHeight);
  const auto count = static_cast<std::int64_t>(frames.size() / kFrameBytes);
  if (count == 0) return {};
  const Share share;
  FrameMaps x(count, kHeight, kWidth, 3);
  std::transform(frames.begin(), frames.end(), x.values.data<float>(),
                 [](std::uint8_t value) { return static_cast<float>(value) / 255.f; });
  const Tensor means({count, weights_.projection.weight.size(1)});
  std::int64_t features = 0;
  for (const auto& cells : weights_.stacks) {
    check_stop();
    x = run_stack(cells, x, share);
    take_means(x, means, features);
    features += x.channels;
  }
  const OneThread one;  // sums in one order
  const Tensor vectors = dense(means, weights_.projection, false);
  normalise_rows(vectors);
  const Tensor seen =
      side_by_side({dense(likeness_band(colour_counts(frames, count)), weights_.colour_band, true),
                    dense(likeness_band(vectors), weights_.feature_band, true),
                    x.values.reshape({count, x.pixels() * x.channels})});
  const Tensor logits = dense(dense(seen, weights_.hidden, true), weights_.head, false);
  std::vector<float> probabilities;
  for (const float logit : logits.floats()) {
    if (std::isnan(logit)) fail("TransNet V2 gives no numbers: its weights are damaged");
    probabilities.push_back(1 / (1 + std::exp(-logit)));
  }
  return probabilities;
}

}  // namespace vfm::models
