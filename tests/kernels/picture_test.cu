// SPDX-License-Identifier: Apache-2.0
#include "kernel_test.h"
#include "picture.h"

using namespace vfm::kernels;
using namespace vfm::test;

namespace {

// Taps of `count` results from `from` samples, whose weights add up to `one`.
struct Taps {
  Taps(int from, int count, int taps, int one, unsigned seed, bool negative) : size(taps) {
    std::mt19937 engine(seed);
    for (int i = 0; i < count; ++i)
      first.push_back(static_cast<int>(engine() % static_cast<unsigned>(from - taps + 1)));
    weights.resize(static_cast<std::size_t>(taps) * static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) {
      int left = one;
      for (int k = 0; k < taps; ++k) {
        int weight = k + 1 == taps ? left : static_cast<int>(engine() % static_cast<unsigned>(one));
        if (k + 1 < taps) weight = negative && k % 2 == 1 ? -weight / 8 : weight * left / one;
        left -= weight;
        weights[static_cast<std::size_t>(k) * static_cast<std::size_t>(count) +
                static_cast<std::size_t>(i)] = weight;
      }
    }
  }
  int at(int k, int i) const {
    return weights[static_cast<std::size_t>(k) * first.size() + static_cast<std::size_t>(i)];
  }
  int size;
  std::vector<std::int32_t> first, weights;
};

struct OnDevice {
  explicit OnDevice(const Taps& taps) : first(taps.first), weights(taps.weights), size(taps.size) {}
  PictureTaps taps() const { return {first.get(), weights.get(), size}; }
  DeviceArray<std::int32_t> first, weights;
  int size;
};

struct Sizes {
  int width, height, to_width, to_height;
  int x_taps, y_taps, chroma_y_taps;
  bool negative;
};

using Lines = std::vector<std::int16_t>;

Lines lines_of(const std::vector<std::uint8_t>& plane, int stride, int step, int offset, int rows,
               const Taps& taps) {
  Lines lines;
  for (int y = 0; y < rows; ++y)
    for (int x = 0; x < static_cast<int>(taps.first.size()); ++x) {
      int sum = 0;
      for (int k = 0; k < taps.size; ++k)
        sum += taps.at(k, x) *
               plane[static_cast<std::size_t>(
                   y * stride + offset + (taps.first[static_cast<std::size_t>(x)] + k) * step)];
      lines.push_back(static_cast<std::int16_t>(std::min(sum >> 7, 32767)));
    }
  return lines;
}

// Lines of a column from `first` on: with weights, rounded if `half`, or as they are (blend < 0),
// or the mean of two.
int column(const Lines& lines, int width, int x, const Taps& taps, int row, int middle, int half) {
  const int first = taps.first[static_cast<std::size_t>(row)];
  const auto line = [&](int k) {
    return int{lines[static_cast<std::size_t>((first + k) * width + x)]};
  };
  std::int64_t sum = half - (std::int64_t{middle} << 12);
  for (int k = 0; k < taps.size; ++k)
    sum += std::int64_t{line(k)} * taps.at(k, row);
  return static_cast<int>(sum >> 10);
}

void compare(Checker& checker, const Sizes& s) {
  const int chroma_width = (s.width + 1) / 2, chroma_height = (s.height + 1) / 2;
  const int stride = 2 * chroma_width + 6;
  std::vector<std::uint8_t> luma(static_cast<std::size_t>(stride * s.height)),
      chroma(static_cast<std::size_t>(stride * chroma_height));
  std::mt19937 engine(5);
  for (auto* plane : {&luma, &chroma})
    for (auto& sample : *plane)
      sample = static_cast<std::uint8_t>(engine() >> 24);
  const Taps lx(s.width, s.to_width, s.x_taps, 1 << 14, 1, s.negative),
      cx(chroma_width, s.to_width, std::min(s.x_taps, 3), 1 << 14, 2, s.negative),
      ly(s.height, s.to_height, s.y_taps, 1 << 12, 3, s.negative),
      cy(chroma_height, s.to_height, s.chroma_y_taps, 1 << 12, 4, s.negative);
  const OnDevice dlx(lx), dcx(cx), dly(ly), dcy(cy);
  const DeviceArray<std::uint8_t> device_luma(luma), device_chroma(chroma);
  const auto lines_size = [&](int rows) { return static_cast<std::size_t>(rows * s.to_width); };
  const DeviceArray<std::int16_t> y(lines_size(s.height)), u(lines_size(chroma_height)),
      v(lines_size(chroma_height));
  PictureRows rows;
  rows.planes[0] = {device_luma.get(), stride, 1, s.height, dlx.taps(), y.get()};
  rows.planes[1] = {device_chroma.get(), stride, 2, chroma_height, dcx.taps(), u.get()};
  rows.planes[2] = {device_chroma.get() + 1, stride, 2, chroma_height, dcx.taps(), v.get()};
  rows.columns = s.to_width;
  need(picture_rows(rows, nullptr), "rows");
  const std::string name = std::to_string(s.width) + " x " + std::to_string(s.height) + " to " +
                           std::to_string(s.to_width) + " x " + std::to_string(s.to_height) +
                           " by " + std::to_string(s.y_taps) + " and " +
                           std::to_string(s.chroma_y_taps);
  const Lines ey = lines_of(luma, stride, 1, 0, s.height, lx),
              eu = lines_of(chroma, stride, 2, 0, chroma_height, cx),
              ev = lines_of(chroma, stride, 2, 1, chroma_height, cx);
  checker.check(name + ": rows", y.host() == ey && u.host() == eu && v.host() == ev);

  PictureColours c;
  c.lines[0] = y.get(), c.lines[1] = u.get(), c.lines[2] = v.get();
  c.luma = dly.taps(), c.chroma = dcy.taps();
  c.width = s.to_width, c.height = s.to_height;
  c.luma_offset = 8192, c.luma_gain = 9539, c.red_v = 14686, c.green_u = -1747, c.green_v = -4366;
  c.blue_u = 17305;
  const auto count = static_cast<std::size_t>(3 * s.to_width * s.to_height);
  // From right to left and bottom to top.
  const DeviceArray<std::uint8_t> rgb(count);
  c.rgb = rgb.get() + count - 3;
  c.step_x = -3, c.step_y = -3 * s.to_width;
  need(picture_colours(c, nullptr), "colours");
  std::vector<std::uint8_t> expected(count);
  const bool one = s.y_taps == 1 && s.chroma_y_taps <= 2,
             two = s.y_taps == 2 && s.chroma_y_taps == 2;
  const int half = two && !s.negative ? 0 : 512;
  for (int row = 0; row < s.to_height; ++row)
    for (int x = 0; x < s.to_width; ++x) {
      int sums[3];  // y, u, v
      sums[0] = column(ey, s.to_width, x, ly, row, 0, half);
      sums[1] = column(eu, s.to_width, x, cy, row, 1 << 14, half);
      sums[2] = column(ev, s.to_width, x, cy, row, 1 << 14, half);
      if (one) {
        const auto at = [&](const Lines& lines, const Taps& taps, int k) {
          return int{lines[static_cast<std::size_t>(
              (taps.first[static_cast<std::size_t>(row)] + k) * s.to_width + x)]};
        };
        const bool mean = s.chroma_y_taps == 2 && cy.at(1, row) >= 2048;
        sums[0] = 4 * at(ey, ly, 0);
        sums[1] = mean ? 2 * (at(eu, cy, 0) + at(eu, cy, 1) - 32768) : 4 * (at(eu, cy, 0) - 16384);
        sums[2] = mean ? 2 * (at(ev, cy, 0) + at(ev, cy, 1) - 32768) : 4 * (at(ev, cy, 0) - 16384);
      }
      const std::int64_t bright = std::int64_t{sums[0] - 8192} * 9539 + (1 << 21);
      const std::int64_t colours[3] = {
          bright + std::int64_t{sums[2]} * 14686,
          bright - std::int64_t{sums[2]} * 4366 - std::int64_t{sums[1]} * 1747,
          bright + std::int64_t{sums[1]} * 17305};
      for (std::size_t k = 0; k < 3; ++k) {
        // swscale's whole numbers have 32 bits, and may wrap.
        const auto wrapped = static_cast<std::int32_t>(static_cast<std::uint32_t>(colours[k]));
        expected[count - 3 - static_cast<std::size_t>(3 * (row * s.to_width + x)) + k] =
            static_cast<std::uint8_t>(std::clamp(wrapped, 0, (1 << 30) - 1) >> 22);
      }
    }
  checker.check(name + ": colours", rgb.host() == expected);
}

void times() {
  // A frame of 1080p to what vfm-pack makes of it by default.
  const Sizes s{1920, 1080, 336, 192, 7, 7, 4, false};
  const Taps lx(s.width, s.to_width, 7, 1 << 14, 1, false),
      cx(960, s.to_width, 4, 1 << 14, 2, false), ly(s.height, s.to_height, 7, 1 << 12, 3, false),
      cy(540, s.to_height, 4, 1 << 12, 4, false);
  const OnDevice dlx(lx), dcx(cx), dly(ly), dcy(cy);
  const DeviceArray<std::uint8_t> planes(1920 * 1620), rgb(3 * 336 * 192);
  const DeviceArray<std::int16_t> lines(336 * 2160);
  PictureRows rows;
  rows.planes[0] = {planes.get(), 1920, 1, 1080, dlx.taps(), lines.get()};
  rows.planes[1] = {planes.get() + 1920 * 1080, 1920, 2, 540, dcx.taps(), lines.get() + 336 * 1080};
  rows.planes[2] = {planes.get() + 1920 * 1080 + 1, 1920, 2, 540, dcx.taps(),
                    lines.get() + 336 * 1620};
  rows.columns = 336;
  time_launch("rows of a 1080p frame", 1920.0 * 1620 + 2.0 * 336 * 2160, 0,
              [&] { return picture_rows(rows, nullptr); });
  PictureColours c;
  c.lines[0] = lines.get(), c.lines[1] = lines.get() + 336 * 1080;
  c.lines[2] = lines.get() + 336 * 1620;
  c.luma = dly.taps(), c.chroma = dcy.taps();
  c.width = 336, c.height = 192, c.luma_gain = 9539;
  c.rgb = rgb.get(), c.step_x = 3, c.step_y = 3 * 336;
  time_launch("its colours", 2.0 * 336 * 2160 + 3.0 * 336 * 192, 0,
              [&] { return picture_colours(c, nullptr); });
}

void tests(Checker& checker) {
  for (const Sizes& s :
       {Sizes{64, 48, 32, 24, 4, 5, 3, false}, Sizes{37, 21, 150, 60, 4, 4, 4, true},
        Sizes{40, 30, 40, 30, 1, 1, 1, false}, Sizes{40, 30, 40, 30, 1, 1, 2, false},
        Sizes{64, 64, 33, 32, 2, 2, 2, false}, Sizes{9, 7, 5, 3, 3, 3, 2, false}})
    compare(checker, s);
  std::vector<std::uint8_t> all(256);
  std::vector<float> expected;
  for (int i = 0; i < 256; ++i) {
    all[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(i);
    expected.push_back(static_cast<float>(i) / 127.5f - 1);
  }
  const DeviceArray<std::uint8_t> bytes(all);
  const DeviceArray<float> pixels(256);
  need(picture_pixels(bytes.get(), pixels.get(), 256, nullptr), "pixels");
  checker.check("every byte's pixel", pixels.host() == expected);
  PictureRows none;
  checker.check("no planes are refused", picture_rows(none, nullptr) == cudaErrorInvalidValue);
  checker.check("no lines are refused", picture_colours({}, nullptr) == cudaErrorInvalidValue);
  times();
}

}  // namespace

int main() {
  return run(tests);
}
