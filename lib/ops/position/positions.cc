// SPDX-License-Identifier: Apache-2.0
#include "ops/position/positions.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "ops/position/position_kernels.h"
#include "ops/run.h"

namespace vfm::ops {
namespace {

std::int64_t token_count(const std::vector<TokenGrid>& grids) {
  std::int64_t count = 0;
  for (const TokenGrid& g : grids)
    count += std::int64_t{g.frames} * g.height * g.width;
  return count;
}

// Three table rows a token.
std::vector<std::int32_t> places(const std::vector<TokenGrid>& grids) {
  std::vector<std::int32_t> result;
  result.reserve(static_cast<std::size_t>(token_count(grids)) * 3);
  for (const TokenGrid& g : grids)
    for (int t = 0; t < g.frames; ++t)
      for (int h = 0; h < g.height; ++h)
        for (int w = 0; w < g.width; ++w)
          result.insert(result.end(), {t, h, w});
  return result;
}

// theta^(-2 i / dim) for i below dim / 2.
std::vector<double> axis_frequencies(int dim, double theta) {
  std::vector<double> frequencies;
  for (int i = 0; i < dim / 2; ++i)
    frequencies.push_back(std::pow(theta, -2.0 * i / dim));
  return frequencies;
}

// `trained`: how many positions rotations are counted in.
void stretch(std::vector<double>& frequencies, int trained, const RotaryOptions& options) {
  const auto [fast, slow] = options.yarn_betas;
  for (double& frequency : frequencies) {
    const double turns = trained * frequency / (2 * std::numbers::pi);
    const double kept = std::clamp((turns - slow) / (fast - slow), 0.0, 1.0);
    frequency *= kept + (1 - kept) / options.yarn_scale;
  }
}

// Cosines and sines of position * frequency, for one axis of one sample.
void axis_angles(int positions, double step, const std::vector<double>& frequencies,
                 std::vector<float>& cosines, std::vector<float>& sines) {
  const int half = static_cast<int>(frequencies.size());
  cosines.resize(static_cast<std::size_t>(positions * half));
  sines.resize(cosines.size());
  for (int i = 0; i < half; ++i) {
    const double frequency = frequencies[static_cast<std::size_t>(i)];
    for (int p = 0; p < positions; ++p) {
      const double angle = p * step * frequency;
      cosines[static_cast<std::size_t>(p * half + i)] = static_cast<float>(std::cos(angle));
      sines[static_cast<std::size_t>(p * half + i)] = static_cast<float>(std::sin(angle));
    }
  }
}

// Row `index * step` of a table, between two rows in proportion.
struct Place {
  const float *low, *high;
  float share;  // of the high one
};
Place place_between(const Tensor& table, int index, double step) {
  const double at = index * step;
  const auto last = table.size(0) - 1;
  const auto low = std::min(static_cast<std::int64_t>(at), last);
  const float* rows = table.data<float>();
  return {rows + low * table.size(1), rows + std::min(low + 1, last) * table.size(1),
          static_cast<float>(at - static_cast<double>(low))};
}

// learned_positions for any step, without a backward.
Tensor stepped_positions(const std::array<Tensor, 3>& tables, const std::vector<TokenGrid>& grids,
                         bool unit) {
  const std::int64_t width = tables[0].size(1);
  Tensor result({token_count(grids), width});
  float* out = result.data<float>();
  for (const TokenGrid& g : grids) {
    std::array<int, 3> at{};
    for (at[0] = 0; at[0] < g.frames; ++at[0])
      for (at[1] = 0; at[1] < g.height; ++at[1])
        for (at[2] = 0; at[2] < g.width; ++at[2]) {
          std::fill_n(out, width, 0.f);
          for (std::size_t axis = 0; axis < 3; ++axis) {
            const auto [low, high, share] = place_between(tables[axis], at[axis], g.step[axis]);
            for (std::int64_t i = 0; i < width; ++i)
              out[i] += low[i] + share * (high[i] - low[i]);
          }
          double squares = 0;
          for (std::int64_t i = 0; i < width; ++i)
            squares += out[i] * out[i];
          const double norm = unit ? 1e-6 + std::sqrt(squares / static_cast<double>(width)) : 1.0;
          for (std::int64_t i = 0; i < width; ++i)
            out[i] = static_cast<float>(out[i] / norm);
          out += width;
        }
  }
  return result;
}

// The last position that a grid reaches along an axis.
double last_position(int size, double step) {
  return (size - 1) * step;
}

}  // namespace

Tensor learned_positions(Tape& tape, const Tensor& table_t, const Tensor& table_h,
                         const Tensor& table_w, const std::vector<TokenGrid>& grids, bool unit) {
  const std::int64_t tokens = token_count(grids), width = table_t.size(1);
  if (table_h.size(1) != width || table_w.size(1) != width)
    fail("learned positions: the tables have different widths");
  bool stepped = false;
  for (const TokenGrid& g : grids) {
    stepped = stepped || g.step != std::array<double, 3>{1, 1, 1};
    if (last_position(g.frames, g.step[0]) > static_cast<double>(table_t.size(0) - 1) ||
        last_position(g.height, g.step[1]) > static_cast<double>(table_h.size(0) - 1) ||
        last_position(g.width, g.step[2]) > static_cast<double>(table_w.size(0) - 1))
      fail("a sample of {}x{}x{} tokens is larger than the position tables ({}x{}x{})", g.frames,
           g.height, g.width, table_t.size(0), table_h.size(0), table_w.size(0));
  }
  if (stepped) {
    if (tape.recording()) fail("positions with a step other than 1 cannot be trained");
    if (table_t.device() == Device::meta) return Tensor({tokens, width}, DType::f32, Device::meta);
    // Once a sampling step, and little: the CPU does it for the GPU too.
    const auto here = [](const Tensor& table) { return table.to(Device::cpu); };
    return stepped_positions({here(table_t), here(table_h), here(table_w)}, grids, unit)
        .to(table_t.device());
  }
  const Device device = table_t.device();
  PositionArgs args;
  args.tokens = tokens;
  args.width = width;
  args.unit = unit;
  const std::array<Tensor, 3> tables{table_t, table_h, table_w};
  for (std::size_t i = 0; i < 3; ++i) {
    args.tables[i] = tables[i].data<float>();
    args.table_rows[i] = tables[i].size(0);
  }
  const Tensor result({tokens, width}, DType::f32, device), norms({tokens}, DType::f32, device);
  args.result = result.data<float>();
  args.norms = norms.data<float>();
  VFM_RUN(Touching(result, norms), learned_positions_forward, args, grids);
  tape.record(result, {table_t, table_h, table_w}, [=](Tape& t) {
    const Tensor dy = t.take(result).to(DType::f32);
    std::array<Tensor, 3> gradients;
    PositionArgs back = args;
    back.dy = dy.data<float>();
    for (std::size_t i = 0; i < 3; ++i) {
      gradients[i] = Tensor::zeros(tables[i].shape(), DType::f32, device);
      back.gradients[i] = gradients[i].data<float>();
    }
    VFM_RUN(Touching(dy, result, norms).cpu_scratch([&] { return tokens; }),
            learned_positions_backward, back, grids);
    for (std::size_t i = 0; i < 3; ++i)
      if (t.wants_grad(tables[i])) t.accumulate(tables[i], gradients[i]);
    (void)norms;  // `args` points into it
  });
  return result;
}

void cpu::learned_positions_forward(const PositionArgs& args, const std::vector<TokenGrid>& grids) {
  const std::vector<std::int32_t> rows = places(grids);
  positions_forward(args, rows.data());
}

void cpu::learned_positions_backward(const PositionArgs& args,
                                     const std::vector<TokenGrid>& grids) {
  const std::vector<std::int32_t> rows = places(grids);
  const Tensor scratch({args.tokens});
  positions_backward(args, rows.data(), scratch.data<float>());
}

RotaryAngles rotary_angles(const std::vector<TokenGrid>& grids, int head_dim,
                           const std::array<double, 3>& scale, const RotaryOptions& options) {
  const int dim_space = head_dim / 6 * 2, dim_time = head_dim - 2 * dim_space;
  if (head_dim % 2 != 0 || dim_space <= 2)
    fail("rotary positions: a head dimension of {} cannot be split over three axes", head_dim);
  const std::array<int, 3> dims{dim_time, dim_space, dim_space};
  const int half = head_dim / 2;
  const Shape shape{token_count(grids), half};
  if (options.device == Device::meta)
    return {Tensor(shape, DType::f32, Device::meta), Tensor(shape, DType::f32, Device::meta)};
  const RotaryAngles angles{Tensor(shape), Tensor(shape)};
  float* cosines = angles.cosines.data<float>();
  float* sines = angles.sines.data<float>();
  std::array<std::vector<double>, 3> frequencies;
  for (std::size_t axis = 0; axis < 3; ++axis)
    frequencies[axis] = axis_frequencies(
        dims[axis], options.theta * std::pow(scale[axis], dims[axis] / (dims[axis] - 2.0)));
  if (options.yarn_scale != 1) {
    stretch(frequencies[0], options.yarn_frames, options);
    for (const std::size_t axis : {1, 2})
      if (options.yarn_rows > 0) stretch(frequencies[axis], options.yarn_rows, options);
  }
  for (const TokenGrid& g : grids) {
    const std::array<int, 3> sizes{g.frames, g.height, g.width};
    std::array<std::vector<float>, 3> c, s;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const double step = g.step[axis] * (axis == 0 && g.fps > 0 ? 24.0 / g.fps : 1.0);
      axis_angles(sizes[axis], step, frequencies[axis], c[axis], s[axis]);
    }
    std::array<int, 3> at{};
    for (at[0] = 0; at[0] < g.frames; ++at[0])
      for (at[1] = 0; at[1] < g.height; ++at[1])
        for (at[2] = 0; at[2] < g.width; ++at[2])
          for (std::size_t axis = 0; axis < 3; ++axis) {
            const int n = dims[axis] / 2;
            cosines = std::copy_n(c[axis].data() + at[axis] * n, n, cosines);
            sines = std::copy_n(s[axis].data() + at[axis] * n, n, sines);
          }
  }
  return {angles.cosines.to(options.device), angles.sines.to(options.device)};
}

Tensor sinusoid(const Tensor& times, int width) {
  const Tensor result({times.elements(), width}, DType::f32, times.device());
  VFM_RUN(Touching(times, result), sinusoid, times, result);
  return result;
}

Tensor sinusoid(std::span<const float> times, int width) {
  return sinusoid(Tensor::from(times, {static_cast<std::int64_t>(times.size())}), width);
}

void cpu::sinusoid(const Tensor& times, const Tensor& result) {
  const int width = static_cast<int>(result.size(1)), half = width / 2;
  float* out = result.data<float>();
  for (float time : times.floats()) {
    for (int i = 0; i < half; ++i) {
      const double angle = time * std::exp(-std::log(10000.0) * i / half);
      out[i] = static_cast<float>(std::cos(angle));
      out[half + i] = static_cast<float>(std::sin(angle));
    }
    out += width;
  }
}

}  // namespace vfm::ops
