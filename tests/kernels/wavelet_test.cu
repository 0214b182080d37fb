// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "kernel_test.h"
#include "wavelet.h"

using vfm::kernels::WaveletBand;
using vfm::kernels::WaveletBatch;
using vfm::kernels::WaveletChannels;
using vfm::kernels::WaveletLevel;
using namespace vfm::test;

namespace {

using Doubles = std::vector<double>;

std::size_t index(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

// ---- Colour and time --------------------------------------------------------------------------

std::int64_t frames_of(const WaveletBatch& b) {
  return b.frames * b.time - (b.single ? b.time - 1 : 0);
}
int planes_of(const WaveletBatch& b) {
  int planes = 0;
  for (int bit = 0; bit < 3 * b.time; ++bit)
    planes += static_cast<int>(b.rows >> bit & 1);
  return planes;
}
double weight(const WaveletBatch& b, std::int64_t k, int row, int column) {
  if (b.single && k == 0) return row == 0 && column == 0 ? 1 : 0;
  return b.matrix[row * b.time + column];
}
// The frame of the batch that is frame f of latent frame k; none (-1) of a single one.
std::int64_t frame_of(const WaveletBatch& b, std::int64_t k, int f) {
  if (!b.single) return k * b.time + f;
  return k > 0 ? 1 + (k - 1) * b.time + f : f == 0 ? 0 : -1;
}

// Y', Cb, Cr of JPEG: (.299, .587, .114), and the differences to blue and red on its scale.
double colour_of(int colour, double r, double g, double b) {
  const double y = 0.299 * r + 0.587 * g + 0.114 * b;
  return colour == 0 ? y : colour == 1 ? (b - y) / 1.772 : (r - y) / 1.402;
}

Doubles split(const WaveletBatch& b, const std::vector<float>& pixels) {
  const std::int64_t area = std::int64_t{b.height} * b.width, all = frames_of(b) * area;
  Doubles planes;
  for (std::int64_t k = 0; k < b.frames; ++k)
    for (int bit = 0; bit < 3 * b.time; ++bit) {
      if (!(b.rows >> bit & 1)) continue;
      for (std::int64_t i = 0; i < area; ++i) {
        double sum = 0;
        for (int f = 0; f < b.time; ++f) {
          const std::int64_t at = frame_of(b, k, f) * area + i;
          if (at >= 0)
            sum += weight(b, k, bit % b.time, f) * colour_of(bit / b.time, pixels[index(at)],
                                                             pixels[index(all + at)],
                                                             pixels[index(2 * all + at)]);
        }
        planes.push_back(sum);
      }
    }
  return planes;
}

Doubles merge(const WaveletBatch& b, const std::vector<float>& planes) {
  const std::int64_t area = std::int64_t{b.height} * b.width, all = frames_of(b) * area;
  Doubles pixels(index(3 * all));
  for (std::int64_t k = 0; k < b.frames; ++k)
    for (int f = 0; f < b.time && frame_of(b, k, f) >= 0; ++f)
      for (std::int64_t i = 0; i < area; ++i) {
        double sums[3] = {};
        std::int64_t plane = k * planes_of(b);
        for (int bit = 0; bit < 3 * b.time; ++bit)
          if (b.rows >> bit & 1)
            sums[bit / b.time] += weight(b, k, f, bit % b.time) * planes[index(plane++ * area + i)];
        const std::int64_t at = frame_of(b, k, f) * area + i;
        const double red = sums[0] + 1.402 * sums[2], blue = sums[0] + 1.772 * sums[1];
        pixels[index(at)] = red;
        pixels[index(all + at)] = (sums[0] - 0.299 * red - 0.114 * blue) / 0.587;
        pixels[index(2 * all + at)] = blue;
      }
  return pixels;
}

WaveletBatch batch(int time, std::int64_t frames, int height, int width, std::uint64_t rows) {
  WaveletBatch b;
  b.time = time, b.frames = frames, b.height = height, b.width = width;
  b.rows = rows & ((std::uint64_t{1} << (3 * time)) - 1);
  const std::vector<float> matrix = noise(index(time * time), 7);
  std::copy(matrix.begin(), matrix.end(), b.matrix);
  return b;
}

void test_batch(Checker& checker, WaveletBatch b) {
  const std::int64_t area = std::int64_t{b.height} * b.width;
  for (const bool single : {false, true}) {
    b.single = single;
    const std::string name = std::to_string(b.frames) + " of " + std::to_string(b.time) + ", " +
                             std::to_string(b.width) + " x " + std::to_string(b.height) +
                             (single ? ", single first" : "");
    const auto pixels = noise(index(3 * frames_of(b) * area), 1);
    const auto planes = noise(index(b.frames * planes_of(b) * area), 2);
    const DeviceArray<float> in(pixels), coefficients(planes), out(planes.size()),
        back(pixels.size());
    need(wavelet_split(b, in.get(), out.get(), nullptr), "wavelet_split");
    need(wavelet_merge(b, coefficients.get(), back.get(), nullptr), "wavelet_merge");
    checker.close("split " + name, out.host(), split(b, pixels), 2e-6);
    checker.close("merge " + name, back.host(), merge(b, planes), 2e-6);
  }
}

// ---- Space ------------------------------------------------------------------------------------

// One line of CDF 9/7 by the lifting steps of ITU-T T.800, annex F, with the mirror images beyond
// the border written down, in place: even samples become the low band, odd ones the high band.
Doubles extended(const Doubles& line) {
  const int n = static_cast<int>(line.size()), period = 2 * (n - 1);
  Doubles result;
  for (int i = -4; i < n + 4; ++i) {
    const int at = ((i % period) + period) % period;
    result.push_back(line[index(at < n ? at : period - at)]);
  }
  return result;
}
// The samples of one parity are changed, by `c` times their neighbours, as far as these reach.
void lift(Doubles& line, int first, double c) {
  for (std::size_t i = index(first); i + 1 < line.size(); i += 2)
    if (i > 0) line[i] += c * (line[i - 1] + line[i + 1]);
}
constexpr double kSteps[4] = {-1.586134342059924, -0.052980118572961, 0.882911075530934,
                              0.443506852043971};
constexpr double kGain = 1.230174104914001;

Doubles analyse_line(const Doubles& line) {
  Doubles all = extended(line);
  for (int step = 0; step < 4; ++step)
    lift(all, step % 2 == 0 ? 1 : 0, kSteps[step]);
  Doubles result;
  for (std::size_t i = 0; i < line.size(); i += 2)
    result.push_back(all[4 + i] / kGain);
  for (std::size_t i = 1; i < line.size(); i += 2)
    result.push_back(all[4 + i] * kGain / 2);
  return result;
}
Doubles synthesise_line(const Doubles& bands) {
  Doubles line(bands.size());
  for (std::size_t i = 0; i < bands.size() / 2; ++i) {
    line[2 * i] = bands[i] * kGain;
    line[2 * i + 1] = bands[bands.size() / 2 + i] * 2 / kGain;
  }
  Doubles all = extended(line);
  for (int step = 3; step >= 0; --step)
    lift(all, step % 2 == 0 ? 1 : 0, -kSteps[step]);
  return {all.begin() + 4, all.end() - 4};
}

// `line` of every row and column of the top left part of every plane.
template <class Line>
Doubles on_planes(const WaveletLevel& l, const std::vector<float>& from, Line line) {
  const int height = l.height >> (l.level - 1), width = l.width >> (l.level - 1);
  Doubles all(from.begin(), from.end());
  for (std::int64_t plane = 0; plane < l.planes; ++plane) {
    double* const at = all.data() + plane * l.height * l.width;
    for (int x = 0; x < width; ++x) {
      Doubles column;
      for (int y = 0; y < height; ++y)
        column.push_back(at[y * l.width + x]);
      column = line(column);
      for (int y = 0; y < height; ++y)
        at[y * l.width + x] = column[index(y)];
    }
    for (int y = 0; y < height; ++y) {
      const Doubles row = line({at + y * l.width, at + y * l.width + width});
      std::copy(row.begin(), row.end(), at + y * l.width);
    }
  }
  return all;
}

// In a band that is part of the level (true), or in its low band.
bool inside(const WaveletLevel& l, std::size_t i, bool low) {
  const int plane = l.height * l.width, y = static_cast<int>(i) % plane / l.width,
            x = static_cast<int>(i) % l.width, shift = low ? l.level : l.level - 1;
  return y < l.height >> shift && x < l.width >> shift;
}

void test_level(Checker& checker, WaveletLevel l) {
  const std::string name = std::to_string(l.planes) + " planes " + std::to_string(l.width) + " x " +
                           std::to_string(l.height) + ", level " + std::to_string(l.level);
  const auto samples = noise(index(l.planes * l.height * l.width), 3);
  std::vector<float> low = samples;
  for (std::size_t i = 0; i < low.size(); ++i)
    if (!inside(l, i, true)) low[i] = 0;
  const Doubles bands = on_planes(l, samples, analyse_line);
  const Doubles whole = on_planes(l, samples, synthesise_line);
  const Doubles of_low = on_planes(l, low, synthesise_line);
  for (const bool details : {true, false}) {
    l.details = details;
    const DeviceArray<float> in(samples), out(samples.size()), back(samples.size()),
        again(samples.size());
    need(wavelet_analyse(l, in.get(), out.get(), nullptr), "wavelet_analyse");
    need(wavelet_synthesise(l, in.get(), back.get(), nullptr), "wavelet_synthesise");
    need(wavelet_analyse(l, in.get(), again.get(), nullptr), "wavelet_analyse");
    // What is not written keeps the pattern it was filled with, NaN.
    Doubles expected = bands, expected_back = details ? whole : of_low;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      if (!inside(l, i, !details)) expected[i] = std::nan("");
      if (!inside(l, i, false)) expected_back[i] = std::nan("");
    }
    const std::string which = name + (details ? "" : ", low band");
    const auto got = out.host(), second = again.host();
    checker.close("analyse " + which, got, expected, 2e-6);
    checker.close("synthesise " + which, back.host(), expected_back, 4e-6);
    checker.check("analyse " + which + " again",
                  std::memcmp(got.data(), second.data(), got.size() * sizeof(float)) == 0);
  }
}

// ---- Latents ----------------------------------------------------------------------------------

// Latents of 3 channels, 2 planes, 2 levels, from frames 1 and 2 of 4: every place by hand.
void test_channels(Checker& checker) {
  const std::vector<WaveletBand> bands = {{0, 1, 2, 1}, {8 * 4 + 2, 0, 1, 2}, {12 * 2, 1, 2, 1}};
  const DeviceArray<WaveletBand> device(bands);
  WaveletChannels c;
  c.bands = device.get();
  c.channels = 3, c.planes = 2, c.levels = 2, c.first = 1, c.frames = 2, c.all = 4;
  c.height = 8, c.width = 12;
  const int area = 2 * 3, plane = 96;
  const auto even = noise(4 * plane, 4), odd = noise(4 * plane, 5),
             latents = noise(3 * 4 * area, 6);
  const DeviceArray<float> dev_even(even), dev_odd(odd), dev_latents(latents);
  const DeviceArray<float> out(latents.size()), to_even(even.size()), to_odd(odd.size());
  need(wavelet_gather(c, dev_even.get(), dev_odd.get(), out.get(), nullptr), "wavelet_gather");
  need(wavelet_scatter(c, dev_latents.get(), to_even.get(), to_odd.get(), nullptr),
       "wavelet_scatter");
  const double nan = std::nan("");
  Doubles gathered(latents.size(), nan), in_even(even.size(), nan), in_odd(odd.size(), nan);
  for (int k = 0; k < 2; ++k)
    for (int y = 0; y < 2; ++y)
      for (int x = 0; x < 3; ++x) {
        const int at = (1 + k) * area + y * 3 + x;
        const int first = (2 * k + 1) * plane + y * 12 + x;
        const int second = 2 * k * plane + 34 + y * 2 * 12 + x * 2;
        const int third = (2 * k + 1) * plane + 24 + y * 12 + x;
        gathered[index(at)] = even[index(first)];
        gathered[index(4 * area + at)] = odd[index(second)];
        gathered[index(8 * area + at)] = even[index(third)];
        in_even[index(first)] = latents[index(at)];
        in_odd[index(second)] = latents[index(4 * area + at)];
        in_even[index(third)] = latents[index(8 * area + at)];
      }
  checker.close("gather", out.host(), gathered, 0);
  checker.close("scatter, even levels", to_even.host(), in_even, 0);
  checker.close("scatter, odd levels", to_odd.host(), in_odd, 0);
  c.first = 3;
  checker.check("frames beyond the latents are refused",
                wavelet_gather(c, nullptr, nullptr, nullptr, nullptr) == cudaErrorInvalidValue);
  c.first = 1, c.height = 10;
  checker.check("a height that is not in latent pixels is refused",
                wavelet_scatter(c, nullptr, nullptr, nullptr, nullptr) == cudaErrorInvalidValue);
  c.height = 8, c.frames = 0;
  checker.check("no frames are no error",
                wavelet_gather(c, nullptr, nullptr, nullptr, nullptr) == 0);
}

void test_refusals(Checker& checker) {
  const auto split_status = [](const WaveletBatch& b) {
    return wavelet_split(b, nullptr, nullptr, nullptr);
  };
  WaveletBatch b = batch(4, 0, 8, 8, ~0ull);
  checker.check("no frames are no error", split_status(b) == 0);
  b.frames = -1;
  checker.check("frames below zero are refused", split_status(b) == cudaErrorInvalidValue);
  b.frames = 1, b.time = 3;
  checker.check("a time factor that is no power of two is refused",
                split_status(b) == cudaErrorInvalidValue);
  b.time = 2;
  checker.check("rows beyond the time factor's are refused",
                split_status(b) == cudaErrorInvalidValue);
  b = batch(1, std::int64_t{1} << 40, 8, 8, 7);
  checker.check("more blocks than a grid has are refused",
                split_status(b) == cudaErrorInvalidValue);
  WaveletLevel l{1, 8, 12, 3, true};
  checker.check("sizes that are not in steps of the level are refused",
                wavelet_analyse(l, nullptr, nullptr, nullptr) == cudaErrorInvalidValue);
  l.level = 0;
  checker.check("level 0 is refused",
                wavelet_synthesise(l, nullptr, nullptr, nullptr) == cudaErrorInvalidValue);
  l.level = 1, l.planes = 0;
  checker.check("no planes are no error", wavelet_analyse(l, nullptr, nullptr, nullptr) == 0);
}

void time_all() {
  const WaveletBatch b = batch(8, 4, 512, 512, 0x0f0f0f);
  const std::int64_t area = 512 * 512;
  const DeviceArray<float> pixels(noise(index(3 * 32 * area), 1)), planes(index(48 * area)),
      others(index(48 * area));
  time_launch("wavelet_split", (3 * 32 + 48) * 4.0 * area, 0,
              [&] { return wavelet_split(b, pixels.get(), planes.get(), nullptr); });
  WaveletLevel l{48, 512, 512, 1, true};
  time_launch("wavelet_analyse", 48 * 8.0 * area, 0,
              [&] { return wavelet_analyse(l, planes.get(), others.get(), nullptr); });
  l.details = false;
  time_launch("wavelet_analyse, low band", 48 * 5.0 * area, 0,
              [&] { return wavelet_analyse(l, planes.get(), others.get(), nullptr); });
  l.details = true;
  time_launch("wavelet_synthesise", 48 * 8.0 * area, 0,
              [&] { return wavelet_synthesise(l, others.get(), planes.get(), nullptr); });
  time_launch("wavelet_merge", (3 * 32 + 48) * 4.0 * area, 0,
              [&] { return wavelet_merge(b, planes.get(), pixels.get(), nullptr); });
}

}  // namespace

int main() {
  return run([](Checker& checker) {
    test_batch(checker, batch(1, 3, 5, 7, ~0ull));
    test_batch(checker, batch(2, 2, 16, 17, 0b100101));
    test_batch(checker, batch(4, 3, 3, 100, 0b000100110111));
    test_batch(checker, batch(8, 2, 20, 26, 0x0f0f0f));
    test_batch(checker, batch(16, 2, 9, 9, ~0ull));
    test_level(checker, {1, 2, 2, 1, true});
    test_level(checker, {3, 8, 12, 1, true});
    test_level(checker, {2, 8, 12, 2, true});
    test_level(checker, {1, 40, 134, 1, true});
    test_level(checker, {2, 96, 160, 1, true});
    test_level(checker, {2, 160, 32, 2, true});
    test_channels(checker);
    test_refusals(checker);
    if (timed()) time_all();
  });
}
