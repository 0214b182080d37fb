// SPDX-License-Identifier: Apache-2.0
#include "ops/conv/conv2d_plain.h"

#include <algorithm>

#include "base/half.h"
#include "ops/conv/conv_kernels.h"
#include "ops/matmul/gemm.h"

namespace vfm::ops {
namespace {

// Some rows of a frame of the result: their pixels' neighbourhoods are gathered at once.
struct Strip {
  std::int64_t image = 0, frame = 0, begin = 0, rows = 0;
  // Where they begin in the result.
  std::int64_t place(const Conv2d& c) const {
    return image * c.y_step() + (frame * c.out_height() + begin) * c.out_width() * c.out;
  }
};

std::int64_t depth_of(const Conv2d& c) {
  return c.in * c.taps();
}

// 4 MiB of gathered pixels.
std::int64_t strip_rows(const Conv2d& c) {
  return std::clamp<std::int64_t>((std::int64_t{1} << 20) / (depth_of(c) * c.out_width()), 1,
                                  c.out_height());
}

template <class Body>
void for_each_strip(const Conv2d& c, Body body) {
  const std::int64_t rows = strip_rows(c);
  for (std::int64_t image = 0; image < c.images; ++image)
    for (std::int64_t frame = 0; frame < c.out_frames(); ++frame)
      for (std::int64_t begin = 0; begin < c.out_height(); begin += rows)
        body(Strip{image, frame, begin, std::min(rows, c.out_height() - begin)});
}

// Calls body(place in the gathered row, offset of the pixel's first channel) for each pixel of a
// neighbourhood that lies in the image.
template <class Body>
void for_each_neighbour(const Conv2d& c, const Strip& strip, std::int64_t pixel, Body body) {
  const std::int64_t row = strip.begin + pixel / c.out_width(), column = pixel % c.out_width();
  std::int64_t tap = -1;
  for (std::int64_t kt = 0; kt < c.kernel_frames; ++kt)
    for (std::int64_t ky = 0; ky < c.kernel_height; ++ky)
      for (std::int64_t kx = 0; kx < c.kernel_width; ++kx) {
        ++tap;
        const std::int64_t t = strip.frame * c.stride_t - c.pad_front + kt;
        const std::int64_t y = row * c.stride_y - c.pad_top + ky;
        const std::int64_t x = column * c.stride_x - c.pad_left + kx;
        if (t >= 0 && t < c.frames && y >= 0 && y < c.height && x >= 0 && x < c.width)
          body(tap, ((t * c.height + y) * c.width + x) * c.in);
      }
}

template <class T>
void gather(const Conv2d& c, const Strip& strip, const T* x, const Tensor& columns) {
  const std::int64_t depth = depth_of(c), taps = c.taps();
  const std::int64_t of_tap = c.weights_last ? c.in : 1, of_channel = c.weights_last ? 1 : taps;
  T* const to = columns.data<T>();
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < strip.rows * c.out_width(); ++i) {
    std::fill(to + i * depth, to + (i + 1) * depth, T{});
    for_each_neighbour(c, strip, i, [&](std::int64_t tap, std::int64_t offset) {
      for (std::int64_t k = 0; k < c.in; ++k)
        to[i * depth + k * of_channel + tap * of_tap] = x[offset + k];
    });
  }
}

// dx += the gathered gradients, each where it came from. On one thread: neighbourhoods overlap.
void scatter(const Conv2d& c, const Strip& strip, const Tensor& columns, float* dx) {
  const std::int64_t depth = depth_of(c), taps = c.taps();
  const float* const from = columns.data<float>();
  for (std::int64_t i = 0; i < strip.rows * c.out_width(); ++i)
    for_each_neighbour(c, strip, i, [&](std::int64_t tap, std::int64_t offset) {
      for (std::int64_t k = 0; k < c.in; ++k)
        dx[offset + k] += from[i * depth + k * taps + tap];
    });
}

float widened(float v) {
  return v;
}
float widened(std::uint16_t v) {
  return bfloat16_to_float(v);
}
void put(float& to, float v) {
  to = v;
}
void put(std::uint16_t& to, float v) {
  to = float_to_bfloat16(v);
}

template <class T>
void forward(const Conv2d& c, DType dtype, const T* x, const T* w, const float* bias,
             const T* residual, T* y) {
  for_each_strip(c, [&](const Strip& strip) {
    const std::int64_t n = strip.rows * c.out_width(), depth = depth_of(c);
    const Tensor columns({n, depth}, dtype), sums({n, c.out});
    gather(c, strip, x + strip.image * c.x_step, columns);
    gemm(Device::cpu, n, c.out, depth, {columns.raw(), dtype, depth, false},
         {w, dtype, depth, true}, sums.raw(), DType::f32, c.out, false);
    const std::int64_t at = strip.place(c);
    for (std::int64_t i = 0; i < n * c.out; ++i) {
      float v = sums.data<float>()[i];
      if (bias != nullptr) v += bias[i % c.out];
      if (residual != nullptr) v += widened(residual[at + i]);
      put(y[at + i], v);
    }
  });
}

template <class T>
void backward_data(const Conv2d& c, DType dtype, const T* dy, const T* w, T* dx) {
  const std::int64_t pixels = c.x_size();
  const Tensor sums({pixels});
  for_each_strip(c, [&](const Strip& strip) {
    if (strip.frame == 0 && strip.begin == 0) std::fill_n(sums.data<float>(), pixels, 0.f);
    const std::int64_t n = strip.rows * c.out_width(), depth = depth_of(c);
    const Tensor columns({n, depth});
    const T* from = dy + strip.place(c);
    gemm(Device::cpu, n, depth, c.out, {from, dtype, c.out, false}, {w, dtype, depth, false},
         columns.raw(), DType::f32, depth, false);
    scatter(c, strip, columns, sums.data<float>());
    if (strip.frame + 1 < c.out_frames() || strip.begin + strip.rows < c.out_height()) return;
    for (std::int64_t i = 0; i < pixels; ++i)
      put(dx[strip.image * c.x_step + i], sums.data<float>()[i]);
  });
}

template <class T>
void backward_weights(const Conv2d& c, DType dtype, const T* x, const T* dy, float* dw,
                      float* dbias) {
  for_each_strip(c, [&](const Strip& strip) {
    const std::int64_t n = strip.rows * c.out_width(), depth = depth_of(c);
    const T* from = dy + strip.place(c);
    if (dw != nullptr) {
      const Tensor columns({n, depth}, dtype);
      gather(c, strip, x + strip.image * c.x_step, columns);
      gemm(Device::cpu, c.out, depth, n, {from, dtype, c.out, true},
           {columns.raw(), dtype, depth, false}, dw, DType::f32, depth, true);
    }
    for (std::int64_t i = 0; dbias != nullptr && i < n * c.out; ++i)
      dbias[i % c.out] += widened(from[i]);
  });
}

}  // namespace

void conv2d_plain(const Conv2d& conv, DType dtype, const void* x, const void* w, const float* bias,
                  const void* residual, void* y) {
  const auto run = [&]<class T>(T) {
    forward(conv, dtype, static_cast<const T*>(x), static_cast<const T*>(w), bias,
            static_cast<const T*>(residual), static_cast<T*>(y));
  };
  dtype == DType::f32 ? run(float{}) : run(std::uint16_t{});
}

void conv2d_backward_data_plain(const Conv2d& conv, DType dtype, const void* dy, const void* w,
                                void* dx) {
  const auto run = [&]<class T>(T) {
    backward_data(conv, dtype, static_cast<const T*>(dy), static_cast<const T*>(w),
                  static_cast<T*>(dx));
  };
  dtype == DType::f32 ? run(float{}) : run(std::uint16_t{});
}

void conv2d_backward_weights_plain(const Conv2d& conv, DType dtype, const void* x, const void* dy,
                                   float* dw, float* dbias) {
  const auto run = [&]<class T>(T) {
    backward_weights(conv, dtype, static_cast<const T*>(x), static_cast<const T*>(dy), dw, dbias);
  };
  dtype == DType::f32 ? run(float{}) : run(std::uint16_t{});
}

std::int64_t conv2d_plain_scratch(const Conv2d& c) {
  return strip_rows(c) * c.out_width() * (depth_of(c) + c.out) + c.x_size();
}

#if !VFM_HAVE_ONEDNN
std::int64_t conv2d_scratch(const Conv2d& conv, DType, bool, bool) {
  return conv2d_plain_scratch(conv);
}
std::int64_t conv2d_backward_data_scratch(const Conv2d& conv, DType) {
  return conv2d_plain_scratch(conv);
}
std::int64_t conv2d_backward_weights_scratch(const Conv2d& conv, DType) {
  return conv2d_plain_scratch(conv);
}
void cpu::conv2d(const Conv2d& conv, DType dtype, const void* x, const void* w, const float* bias,
                 const void* residual, void* y) {
  conv2d_plain(conv, dtype, x, w, bias, residual, y);
}
void cpu::conv2d_backward_data(const Conv2d& conv, DType dtype, const void* dy, const void* w,
                               void* dx) {
  conv2d_backward_data_plain(conv, dtype, dy, w, dx);
}
void cpu::conv2d_backward_weights(const Conv2d& conv, DType dtype, const void* x, const void* dy,
                                  float* dw, float* dbias) {
  conv2d_backward_weights_plain(conv, dtype, x, dy, dw, dbias);
}
#endif

}  // namespace vfm::ops
