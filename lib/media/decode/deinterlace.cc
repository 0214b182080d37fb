// SPDX-License-Identifier: Apache-2.0
#include "media/decode/deinterlace.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace vfm::media {
namespace {

template <class Sample>
const Sample* line(const Frame& frame, int p, int y) {
  return reinterpret_cast<const Sample*>(frame.plane[p] +
                                         static_cast<std::ptrdiff_t>(y) * frame.stride[p]);
}

bool alike(const Frame* a, const Frame& b) {
  return a && a->plane[0] && a->layout == b.layout && a->width == b.width && a->height == b.height;
}

// Makes a line of the second field for the time of the first field. This line of `before` is
// earlier, and of `now` later. `kMost` is the largest sample.
template <class Sample, int kMost>
void make_line(const Frame& before, const Frame& now, const Frame& after, int p, int y, bool alone,
               Sample* out) {
  const int rows = plane_rows(now, p);
  const int count = plane_row_bytes(now, p) / static_cast<int>(sizeof(Sample));
  const auto inside = [&](int wanted) {  // Of the field of line y - 1.
    while (wanted < 0)
      wanted += 2;
    while (wanted >= rows)
      wanted -= 2;
    return std::max(wanted, 0);
  };
  const int up = inside(y - 1), down = inside(y + 1), up3 = inside(y - 3), down3 = inside(y + 3);
  const auto at = [p](const Frame& frame, int row) { return line<Sample>(frame, p, row); };
  const Sample *a = at(now, up), *b = at(now, down), *a3 = at(now, up3), *b3 = at(now, down3);
  const Sample *past = at(before, y), *next = at(now, y);
  const Sample *past_a = at(before, up), *past_b = at(before, down);
  const Sample *next_a = at(after, up), *next_b = at(after, down);
  for (int x = 0; x < count; ++x) {
    const int space = std::clamp((9 * (a[x] + b[x]) - a3[x] - b3[x] + 8) >> 4, 0, kMost);
    if (alone) {
      out[x] = static_cast<Sample>(space);
      continue;
    }
    const int middle = (past[x] + next[x] + 1) / 2;
    const int change = std::max({std::abs(past[x] - next[x]) / 2,
                                 (std::abs(past_a[x] - a[x]) + std::abs(past_b[x] - b[x])) / 2,
                                 (std::abs(next_a[x] - a[x]) + std::abs(next_b[x] - b[x])) / 2});
    out[x] = static_cast<Sample>(
        std::clamp(space, std::max(0, middle - change), std::min(kMost, middle + change)));
  }
}

}  // namespace

Frame deinterlace(const Frame* before, const Frame& frame, const Frame* after) {
  // At the begin or end of the video, the only neighbour stands for both.
  const Frame* one = alike(before, frame) ? before : alike(after, frame) ? after : nullptr;
  const Frame& past = one ? *one : frame;
  const Frame& next = alike(after, frame) ? *after : past;
  Frame whole = copy_frame(frame);
  for (int p = 0; p < plane_count(frame.layout); ++p)
    for (int y = frame.top_first ? 1 : 0; y < plane_rows(frame, p); y += 2) {
      std::uint8_t* out = writable(whole, p) + static_cast<std::ptrdiff_t>(y) * whole.stride[p];
      if (frame.layout == PixelLayout::yuv420p10)
        make_line<std::uint16_t, 1023>(past, frame, next, p, y, !one,
                                       reinterpret_cast<std::uint16_t*>(out));
      else
        make_line<std::uint8_t, 255>(past, frame, next, p, y, !one, out);
    }
  return whole;
}

}  // namespace vfm::media
