// Against bit patterns and the transpose; that two levels are what lib/ops/conv/haar.h says is
// video_test's to show.
// SPDX-License-Identifier: Apache-2.0
#include "haar.h"
#include "kernel_test.h"

using namespace vfm::kernels;
using namespace vfm::test;

namespace {

struct Sizes {
  HaarLevel level;
  std::size_t fine, coarse;
};

Sizes sizes(std::int64_t frames, std::int64_t height, std::int64_t width, std::int64_t channels,
            std::int64_t repeated, bool last_only) {
  Sizes s;
  s.level = {frames, height, width, channels, repeated, last_only, 0.5f};
  s.coarse = static_cast<std::size_t>(frames * height * width * channels);
  s.fine = static_cast<std::size_t>((frames - repeated + 1) * height * width * channels);
  return s;
}

std::size_t fine_at(const HaarLevel& l, std::int64_t t, std::int64_t y, std::int64_t x,
                    std::int64_t c) {
  const std::int64_t stored = t < l.repeated ? 0 : t - l.repeated + 1;
  return static_cast<std::size_t>(((stored * l.height + y) * l.width + x) * l.channels + c);
}

// coarse[i] = scale * the sum over eight neighbours j of fine * sign: calls body(coarse, fine,
// factor).
template <class Body>
void each_term(const HaarLevel& l, Body body) {
  std::size_t place = 0;
  for (std::int64_t t = 0; t < l.frames; t += 2)
    for (std::int64_t y = 0; y < l.height; y += 2)
      for (std::int64_t x = 0; x < l.width; x += 2, ++place)
        for (int band = 0; band < 8; ++band)
          for (std::int64_t c = 0; c < l.channels; ++c)
            for (int j = 0; j < 8; ++j) {
              const std::int64_t frame = t + (j >> 2);
              if (l.last_only && frame + 1 < l.repeated) continue;
              const int minus = (band & j & 1) + (band & j & 2) / 2 + (band & j & 4) / 4;
              body((place * 8 + static_cast<std::size_t>(band)) *
                           static_cast<std::size_t>(l.channels) +
                       static_cast<std::size_t>(c),
                   fine_at(l, frame, y + (j >> 1 & 1), x + (j & 1), c),
                   double{l.scale} * (minus % 2 ? -1 : 1));
            }
}

void compare(Checker& checker, const Sizes& s, const std::string& name) {
  const auto fine = noise(s.fine, 1), coarse = noise(s.coarse, 2);
  const DeviceArray<float> dfine(fine), dcoarse(coarse), split(s.coarse), merged(s.fine);
  need(haar_split(s.level, dfine.get(), split.get(), nullptr), "split");
  need(haar_merge(s.level, dcoarse.get(), merged.get(), nullptr), "merge");
  std::vector<double> bands(s.coarse), pixels(s.fine);
  each_term(s.level, [&](std::size_t c, std::size_t f, double factor) {
    bands[c] += factor * fine[f];
    pixels[f] += factor * coarse[c];
  });
  checker.close(name + " split", split.host(), bands, 1e-6);
  checker.close(name + " merged", merged.host(), pixels, 1e-6);
}

void tests(Checker& checker) {
  compare(checker, sizes(4, 2, 6, 3, 1, false), "no frame repeated");
  compare(checker, sizes(8, 4, 2, 5, 4, false), "four frames are one");
  compare(checker, sizes(8, 4, 2, 5, 4, true), "the last of four frames");
  compare(checker, sizes(2, 34, 18, 24, 2, false), "two frames are one");
  compare(checker, sizes(2, 2, 2, 300, 2, true), "one place");
  HaarLevel odd{3, 2, 2, 1, 1, false, 1};
  checker.check("odd sizes are refused",
                haar_split(odd, nullptr, nullptr, nullptr) == cudaErrorInvalidValue);
  HaarLevel long_first{2, 2, 2, 1, 4, false, 1};
  checker.check("more repeated frames than there are are refused",
                haar_merge(long_first, nullptr, nullptr, nullptr) == cudaErrorInvalidValue);
  checker.check("nothing is no error", haar_split({}, nullptr, nullptr, nullptr) == 0);
}

}  // namespace

int main() {
  return run(tests);
}
