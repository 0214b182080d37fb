// SPDX-License-Identifier: Apache-2.0
#include "models/decoder/decoder_positions.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numeric>

#include "ops/pointwise/add.h"
#include "ops/pointwise/embedding.h"

namespace vfm::models {
namespace {

constexpr std::int32_t kNowhere = -1;

/// The code that each token is at, as its number in the pack; kNowhere: before the first.
std::vector<std::int32_t> codes_of_tokens(const DecoderConfig& config,
                                          const std::vector<CodeSample>& samples) {
  std::vector<std::int32_t> at;
  for (const CodeSample& sample : samples) {
    const auto begin = static_cast<std::int32_t>(at.size());
    at.resize(at.size() + static_cast<std::size_t>(sample.codes()));
    std::iota(at.begin() + begin, at.end(), begin);
    if (!config.read_positions || !config.start_token) continue;
    std::shift_right(at.begin() + begin, at.end(), 1);
    at[static_cast<std::size_t>(begin)] = kNowhere;
  }
  return at;
}

/// The largest frames, height and width.
std::array<int, 3> extents_of(const std::vector<CodeSample>& samples) {
  std::array<int, 3> most{};
  for (const CodeSample& s : samples)
    most = {std::max(most[0], s.frames), std::max(most[1], s.height), std::max(most[2], s.width)};
  return most;
}

/// The sinusoids of all frames, then rows, then columns, each with zeros where the others have
/// theirs.
Tensor sinusoid_table(int width, const std::array<int, 3>& extents) {
  const int space = width / 6 * 2;
  const std::array<int, 3> parts{width - 2 * space, space, space};
  const Tensor table =
      Tensor::zeros({std::int64_t{extents[0]} + extents[1] + extents[2], width}, DType::f32);
  float* out = table.data<float>();
  int first = 0;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const int half = parts[axis] / 2;
    for (int place = 0; place < extents[axis]; ++place, out += width)
      for (int i = 0; i < half; ++i) {
        const double angle = place * std::pow(10000.0, -static_cast<double>(i) / half);
        out[first + i] = static_cast<float>(std::sin(angle));
        out[first + half + i] = static_cast<float>(std::cos(angle));
      }
    first += parts[axis];
  }
  return table.to(DType::bf16).to(DType::f32);
}

/// Rows of that table for each code of the pack.
std::array<std::vector<std::int32_t>, 3> rows_of_codes(const std::vector<CodeSample>& samples,
                                                       const std::array<int, 3>& extents) {
  std::array<std::vector<std::int32_t>, 3> rows;
  for (const CodeSample& s : samples)
    for (int t = 0; t < s.frames; ++t)
      for (int h = 0; h < s.height; ++h)
        for (int w = 0; w < s.width; ++w) {
          rows[0].push_back(t);
          rows[1].push_back(extents[0] + h);
          rows[2].push_back(extents[0] + extents[1] + w);
        }
  return rows;
}

}  // namespace

ops::RotaryAngles token_angles(const DecoderConfig& config, const std::vector<CodeSample>& samples,
                               Device device) {
  std::vector<ops::TokenGrid> grids;
  for (const CodeSample& s : samples)
    grids.push_back({s.frames, s.height, s.width, 0, {1, 1, 1}});
  ops::RotaryOptions options;
  options.theta = config.rope_theta;
  options.yarn_scale = config.yarn_scale;
  options.yarn_frames = config.yarn_frames;
  options.yarn_rows = config.yarn_rows;
  options.yarn_betas = config.yarn_betas;
  options.device = device;
  ops::RotaryAngles angles =
      ops::rotary_angles(grids, config.attention_head_dim, {1, 1, 1}, options);
  if (!config.read_positions || !config.start_token) return angles;
  std::vector<std::int32_t> at = codes_of_tokens(config, samples);
  for (std::size_t i = 0; i < at.size(); ++i)
    if (at[i] == kNowhere) at[i] = static_cast<std::int32_t>(i);
  ops::Tape silent(false);
  for (Tensor* each : {&angles.cosines, &angles.sines})
    *each = ops::embedding(silent, *each, at);
  return angles;
}

Tensor absolute_positions(const DecoderConfig& config, const std::vector<CodeSample>& samples,
                          const std::vector<ops::RowRange>& rows, Device device) {
  const Shape shape{ops::row_count(rows), config.width()};
  if (device == Device::meta) return Tensor(shape, DType::f32, device);
  const std::array<int, 3> extents = extents_of(samples);
  const Tensor table = sinusoid_table(config.width(), extents).to(device);
  const std::vector<std::int32_t> at = codes_of_tokens(config, samples);
  ops::Tape silent(false);
  Tensor sum;
  for (const std::vector<std::int32_t>& of_codes : rows_of_codes(samples, extents)) {
    std::vector<std::int32_t> numbers;
    for (const ops::RowRange& range : rows)
      for (std::int64_t i = range.begin; i < range.end; ++i) {
        const std::int32_t code = at[static_cast<std::size_t>(i)];
        numbers.push_back(code == kNowhere ? kNowhere : of_codes[static_cast<std::size_t>(code)]);
      }
    const Tensor part = ops::embedding(silent, table, numbers);
    sum = sum.defined() ? ops::add(silent, sum, part) : part;
  }
  return sum;
}

}  // namespace vfm::models
