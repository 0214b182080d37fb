// SPDX-License-Identifier: Apache-2.0
#include "curate/measures/text_edges.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <numeric>

namespace vfm::curate {
namespace {

constexpr int kSegment = 16;          // columns in a segment
constexpr int kStrokeContrast = 56;   // grey levels over two pixels at the edges of a stroke
constexpr int kWidestStroke = 12;     // pixels between the edges of a stroke
constexpr int kManyStrokes = 4;       // in a row of three segments
constexpr int kLeastHeight = 6;       // rows of a line
constexpr int kMostHeights = 7;       // in the height of a picture
constexpr int kLeastSegments = 5;     // in a line
constexpr double kQuiet = 0.25;       // strokes beside a line for each stroke in the line
constexpr double kOneLightness = 32;  // standard deviation of a line's strokes, in grey levels

/// The strokes that begin in one segment of a row: light strokes, then dark strokes.
struct SegmentStrokes {
  std::uint16_t count[2] = {0, 0};
  std::uint16_t sum[2] = {0, 0};  // of their lightness
  std::uint32_t squares[2] = {0, 0};

  int all() const { return count[0] + count[1]; }
};

struct StrokeGrid {
  int columns = 0, rows = 0;
  std::vector<SegmentStrokes> cells;

  SegmentStrokes& at(int x, int y) {
    return cells[static_cast<std::size_t>(y) * static_cast<std::size_t>(columns) +
                 static_cast<std::size_t>(x)];
  }
  const SegmentStrokes& at(int x, int y) const { return const_cast<StrokeGrid*>(this)->at(x, y); }
};

void add_stroke(StrokeGrid& grid, int y, int begin, int end, bool dark, const std::uint8_t* row) {
  SegmentStrokes& cell = grid.at(std::min(begin / kSegment, grid.columns - 1), y);
  std::uint8_t level = row[begin];
  for (int x = begin; x <= end; ++x)
    level = dark ? std::min(level, row[x]) : std::max(level, row[x]);
  ++cell.count[dark];
  cell.sum[dark] = static_cast<std::uint16_t>(cell.sum[dark] + level);
  cell.squares[dark] += std::uint32_t{level} * level;
}

/// Finds edges in a row, the steepest places of slopes. A stroke is between two edges of opposite
/// sign.
class RowScan {
 public:
  RowScan(StrokeGrid& grid, const std::uint8_t* row, int y) : grid_(grid), row_(row), y_(y) {}
  bool between_slopes() const { return best_ == 0; }
  void look(int x) {
    const int slope = row_[x + 1] - row_[x - 1];
    const bool steep = std::abs(slope) >= kStrokeContrast;
    if (steep && (best_ == 0 || (slope > 0) == (best_ > 0))) {
      if (std::abs(slope) > std::abs(best_)) best_ = slope, best_at_ = x;
      return;
    }
    if (best_ == 0) return;
    if (edge_ != 0 && (edge_ > 0) != (best_ > 0) && best_at_ - edge_at_ <= kWidestStroke)
      add_stroke(grid_, y_, edge_at_, best_at_, best_ > 0, row_);
    edge_ = best_, edge_at_ = best_at_;
    best_ = steep ? slope : 0, best_at_ = x;
  }

 private:
  StrokeGrid& grid_;
  const std::uint8_t* row_;
  int y_;
  int edge_at_ = 0, edge_ = 0;  // the last edge
  int best_at_ = 0, best_ = 0;  // of the current slope
};

/// Skips eight pixels at a time, because most of a picture is not steep.
void count_strokes(const ReducedLuma& picture, StrokeGrid& grid) {
  const int width = picture.width;
  std::vector<std::uint8_t> steep(static_cast<std::size_t>(width) + 8);
  for (int y = 0; y < picture.height; ++y) {
    const std::uint8_t* row = picture.row(y);
    for (int x = 1; x + 1 < width; ++x) {
      const int slope = row[x + 1] - row[x - 1];
      steep[static_cast<std::size_t>(x)] = slope >= kStrokeContrast || slope <= -kStrokeContrast;
    }
    RowScan scan(grid, row, y);
    for (int x = 1; x + 1 < width;) {
      std::uint64_t eight = 0;
      std::memcpy(&eight, &steep[static_cast<std::size_t>(x)], sizeof eight);
      if (eight == 0 && scan.between_slopes()) {
        x += 8;
        continue;
      }
      for (const int end = std::min(x + 8, width - 1); x < end; ++x)
        scan.look(x);
    }
  }
}

/// The rows [top, bottom) of a line in one segment. Rows [begin, end) have many strokes.
struct Band {
  int top = 0, bottom = 0, begin = 0, end = 0;
  bool used = false;
  int height() const { return end - begin; }
};

int around(const StrokeGrid& grid, int x, int y) {
  int sum = grid.at(x, y).all();
  if (x > 0) sum += grid.at(x - 1, y).all();
  if (x + 1 < grid.columns) sum += grid.at(x + 1, y).all();
  return sum;
}

/// Returns the distance from row `edge` to rows without strokes in the direction `step`. Returns -1
/// if the distance is larger than an ascender.
int quiet_after(const std::vector<int>& strokes, int edge, int step, int height, double mean) {
  const int rows = static_cast<int>(strokes.size()), margin = std::max(2, height / 5);
  for (int away = 1; away <= 2 + 2 * height / 3; ++away) {
    int sum = 0;
    for (int i = 0; i < margin; ++i) {
      const int y = edge + step * (away + i);
      if (y >= 0 && y < rows) sum += strokes[static_cast<std::size_t>(y)];
    }
    if (sum <= kQuiet * mean * margin) return away;
  }
  return -1;
}

std::vector<Band> bands_of(const StrokeGrid& grid, int x) {
  std::vector<int> strokes(static_cast<std::size_t>(grid.rows));
  for (int y = 0; y < grid.rows; ++y)
    strokes[static_cast<std::size_t>(y)] = around(grid, x, y);
  const auto many = [&](int y) {
    return y < grid.rows && strokes[static_cast<std::size_t>(y)] >= kManyStrokes;
  };
  std::vector<Band> bands;
  for (int y = 0; y < grid.rows; ++y) {
    if (!many(y)) continue;
    int end = y + 1;
    while (many(end) || many(end + 1))  // a row of crossbars has fewer strokes
      ++end;
    const int height = end - y;
    const double mean = std::accumulate(strokes.begin() + y, strokes.begin() + end, 0.0) / height;
    if (height >= kLeastHeight && height * kMostHeights <= grid.rows) {
      const int above = quiet_after(strokes, y, -1, height, mean);
      const int below = quiet_after(strokes, end - 1, 1, height, mean);
      if (above > 0 && below > 0)
        bands.push_back({std::max(0, y - above + 1), std::min(grid.rows, end + below - 1), y, end});
    }
    y = end;
  }
  return bands;
}

/// Returns true if the light or the dark strokes in a box have the same lightness.
bool one_lightness(const StrokeGrid& grid, const PixelArea& box) {
  double n[2] = {}, sum[2] = {}, squares[2] = {};
  for (int y = box.top; y < box.bottom; ++y)
    for (int x = box.left; x < box.right; ++x)
      for (int d = 0; d < 2; ++d) {
        const SegmentStrokes& cell = grid.at(x, y);
        n[d] += cell.count[d], sum[d] += cell.sum[d], squares[d] += cell.squares[d];
      }
  for (int d = 0; d < 2; ++d) {
    if (n[d] < 0.35 * (n[0] + n[1])) continue;
    const double mean = sum[d] / n[d];
    if (squares[d] / n[d] - mean * mean <= kOneLightness * kOneLightness) return true;
  }
  return false;
}

/// Returns the line that begins with a band and goes on to the right with bands in about the same
/// rows. Between words, one segment without a band is skipped.
PixelArea follow(std::vector<std::vector<Band>>& bands, int x, const Band& first,
                 PixelArea& middle) {
  const int columns = static_cast<int>(bands.size());
  PixelArea line{x, first.top, x + 1, first.bottom};
  middle = {x, first.begin, x + 1, first.end};
  Band last = first;
  for (int at = x + 1; at < columns && at <= line.right + 1; ++at) {
    auto& next = bands[static_cast<std::size_t>(at)];
    const auto found = std::find_if(next.begin(), next.end(), [&](const Band& b) {
      const int most = 2 + last.height() / 4;
      return !b.used && std::abs(b.begin - last.begin) <= most &&
             std::abs(b.end - last.end) <= most;
    });
    if (found == next.end()) continue;
    found->used = true;
    last = *found;
    line.top = std::min(line.top, last.top), line.bottom = std::max(line.bottom, last.bottom);
    line.right = at + 1;
    middle.top = std::min(middle.top, last.begin),
    middle.bottom = std::max(middle.bottom, last.end);
    middle.right = at + 1;
  }
  return line;
}

void find_lines_at(const ReducedLuma& picture, int scale, std::vector<PixelArea>& lines) {
  StrokeGrid grid{picture.width / kSegment, picture.height, {}};
  if (grid.columns < 3 || grid.rows < kLeastHeight * kMostHeights) return;
  grid.cells.resize(static_cast<std::size_t>(grid.columns) * static_cast<std::size_t>(grid.rows));
  count_strokes(picture, grid);
  std::vector<std::vector<Band>> bands;
  for (int x = 0; x < grid.columns; ++x)
    bands.push_back(bands_of(grid, x));
  for (int x = 0; x < grid.columns; ++x)
    for (const Band& first : bands[static_cast<std::size_t>(x)]) {
      if (first.used) continue;
      PixelArea middle;
      const PixelArea line = follow(bands, x, first, middle);
      const int height = first.height();
      // A slanted row of objects is higher than the objects.
      if (line.width() < kLeastSegments || line.width() * kSegment < 2 * height ||
          middle.height() > 2 * height || !one_lightness(grid, middle))
        continue;
      const int wide = kSegment * scale;
      lines.push_back({line.left * wide, line.top * scale, line.right * wide, line.bottom * scale});
    }
}

ReducedLuma half_of(const ReducedLuma& picture) {
  ReducedLuma half{2 * picture.factor, picture.width / 2, picture.height / 2, {}};
  half.pixels.resize(static_cast<std::size_t>(half.width) * static_cast<std::size_t>(half.height));
  std::uint8_t* to = half.pixels.data();
  for (int y = 0; y < half.height; ++y) {
    const std::uint8_t *a = picture.row(2 * y), *b = picture.row(2 * y + 1);
    for (int x = 0; x < half.width; ++x)
      *to++ = static_cast<std::uint8_t>((a[2 * x] + a[2 * x + 1] + b[2 * x] + b[2 * x + 1]) / 4);
  }
  return half;
}

}  // namespace

std::vector<PixelArea> find_text_lines(const ReducedLuma& picture) {
  std::vector<PixelArea> lines;
  find_lines_at(picture, 1, lines);
  find_lines_at(half_of(picture), 2, lines);
  return lines;
}

double text_area(const ReducedLuma& picture) {
  const std::vector<PixelArea> lines = find_text_lines(picture);
  if (lines.empty()) return 0;
  std::int64_t covered = 0;
  for (int y = 0; y < picture.height; ++y)
    for (int x = 0; x < picture.width; x += kSegment)
      if (std::any_of(lines.begin(), lines.end(), [&](const PixelArea& a) {
            return y >= a.top && y < a.bottom && x >= a.left && x < a.right;
          }))
        covered += kSegment;
  return static_cast<double>(covered) /
         (static_cast<double>(picture.width) * static_cast<double>(picture.height));
}

}  // namespace vfm::curate
