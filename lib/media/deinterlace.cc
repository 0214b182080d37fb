// SPDX-License-Identifier: Apache-2.0
#include "media/deinterlace.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace vfm::media {
namespace {

const std::uint8_t* line(const Frame& frame, int p, int y) {
  return frame.plane[p] + static_cast<std::ptrdiff_t>(y) * frame.stride[p];
}

bool alike(const Frame* a, const Frame& b) {
  return a && a->plane[0] && a->layout == b.layout && a->width == b.width && a->height == b.height;
}

// One line of the second field. Of the frame before, the second field is the nearer one in time,
// and lies at this line; of the frame itself, this line comes after.
void make_line(const Frame& before, const Frame& now, const Frame& after, int p, int y, bool alone,
               std::uint8_t* out) {
  const int rows = plane_rows(now, p), count = plane_row_bytes(now, p);
  const auto inside = [&](int wanted) {  // of the same field as line y - 1
    while (wanted < 0)
      wanted += 2;
    while (wanted >= rows)
      wanted -= 2;
    return std::max(wanted, 0);
  };
  const int up = inside(y - 1), down = inside(y + 1), up3 = inside(y - 3), down3 = inside(y + 3);
  const std::uint8_t *a = line(now, p, up), *b = line(now, p, down);
  const std::uint8_t *a3 = line(now, p, up3), *b3 = line(now, p, down3);
  const std::uint8_t *past = line(before, p, y), *next = line(now, p, y);
  const std::uint8_t *past_a = line(before, p, up), *past_b = line(before, p, down);
  const std::uint8_t *next_a = line(after, p, up), *next_b = line(after, p, down);
  for (int x = 0; x < count; ++x) {
    const int space = std::clamp((9 * (a[x] + b[x]) - a3[x] - b3[x] + 8) >> 4, 0, 255);
    if (alone) {
      out[x] = static_cast<std::uint8_t>(space);
      continue;
    }
    const int middle = (past[x] + next[x] + 1) / 2;
    const int change = std::max({std::abs(past[x] - next[x]) / 2,
                                 (std::abs(past_a[x] - a[x]) + std::abs(past_b[x] - b[x])) / 2,
                                 (std::abs(next_a[x] - a[x]) + std::abs(next_b[x] - b[x])) / 2});
    out[x] = static_cast<std::uint8_t>(
        std::clamp(space, std::max(0, middle - change), std::min(255, middle + change)));
  }
}

}  // namespace

Frame deinterlace(const Frame* before, const Frame& frame, const Frame* after) {
  // At an end of the video the one neighbour stands for both.
  const Frame* one = alike(before, frame) ? before : alike(after, frame) ? after : nullptr;
  const Frame& past = one ? *one : frame;
  const Frame& next = alike(after, frame) ? *after : past;
  Frame whole = copy_frame(frame);
  for (int p = 0; p < plane_count(frame.layout); ++p)
    for (int y = frame.top_first ? 1 : 0; y < plane_rows(frame, p); y += 2)
      make_line(past, frame, next, p, y, !one,
                writable(whole, p) + static_cast<std::ptrdiff_t>(y) * whole.stride[p]);
  return whole;
}

}  // namespace vfm::media
