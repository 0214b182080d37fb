// SPDX-License-Identifier: Apache-2.0
#include "curate/measures/still_overlay.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace vfm::curate {
namespace {

constexpr int kPixelStep = 2;  // from an edge to the next, in reduced pixels
constexpr int kFewPictures = 8;
constexpr int kEdge = 24;                   // minimum strength of an overlay's edge, in grey levels
constexpr int kFaintEdge = 6;               // minimum mean strength of a passing edge
constexpr double kKept = 0.9, kLost = 0.6;  // share of strength in the mean: still, moving
constexpr double kMostStill = 0.1, kLeastMoving = 0.6;  // shares of all edges
constexpr int kCell = 8;                                // side of a cell, in edges
constexpr int kFewEdges = 4;                            // minimum number in a cell
constexpr int kFewInAll = 24;                           // minimum number in an overlay
constexpr double kMostArea = 0.1;

struct Group {
  int edges = 0;
  PixelArea box;  // of the edges
};

class Grouping {
 public:
  Grouping(int columns, int rows)
      : columns_((columns + kCell - 1) / kCell),
        rows_((rows + kCell - 1) / kCell),
        cells_(static_cast<std::size_t>(columns_) * static_cast<std::size_t>(rows_)) {}

  void add(int x, int y) {
    Group& cell = at(x / kCell, y / kCell);
    if (cell.edges++ == 0) cell.box = {x, y, x + 1, y + 1};
    join(cell.box, {x, y, x + 1, y + 1});
  }
  Group largest() {
    Group best;
    for (int y = 0; y < rows_; ++y)
      for (int x = 0; x < columns_; ++x) {
        const Group group = take(x, y);
        if (group.edges > best.edges) best = group;
      }
    return best;
  }

 private:
  Group& at(int x, int y) {
    return cells_[static_cast<std::size_t>(y) * static_cast<std::size_t>(columns_) +
                  static_cast<std::size_t>(x)];
  }
  static void join(PixelArea& a, const PixelArea& b) {
    a = {std::min(a.left, b.left), std::min(a.top, b.top), std::max(a.right, b.right),
         std::max(a.bottom, b.bottom)};
  }
  /// Takes the group of a cell. Ignores cells with few edges.
  Group take(int x, int y) {
    Group group;
    std::vector<std::pair<int, int>> open{{x, y}};
    while (!open.empty()) {
      const auto [cx, cy] = open.back();
      open.pop_back();
      if (cx < 0 || cy < 0 || cx >= columns_ || cy >= rows_) continue;
      Group& cell = at(cx, cy);
      if (cell.edges < kFewEdges) continue;
      if (group.edges == 0) group.box = cell.box;
      join(group.box, cell.box);
      group.edges += cell.edges;
      cell.edges = 0;
      for (int dy = -1; dy <= 1; ++dy)
        for (int dx = -1; dx <= 1; ++dx)
          open.emplace_back(cx + dx, cy + dy);
    }
    return group;
  }
  int columns_, rows_;
  std::vector<Group> cells_;
};

}  // namespace

void StillOverlay::add(const ReducedLuma& picture) {
  if (factor_ == 0) {
    factor_ = picture.factor, width_ = picture.width, height_ = picture.height;
    columns_ = std::max(0, (width_ - 2) / kPixelStep),
    rows_ = std::max(0, (height_ - 2) / kPixelStep);
    edges_.resize(static_cast<std::size_t>(columns_) * static_cast<std::size_t>(rows_));
  }
  if (picture.factor != factor_ || picture.width != width_ || picture.height != height_) return;
  ++pictures_;
  Edge* edge = edges_.data();
  for (int y = 0; y < rows_; ++y) {
    const std::uint8_t* p = picture.row(1 + y * kPixelStep) + 1;
    for (int x = 0; x < columns_; ++x, p += kPixelStep, ++edge) {
      const int dx = p[1] - p[-1], dy = p[width_] - p[-width_];
      edge->x += dx, edge->y += dy, edge->strength += std::abs(dx) + std::abs(dy);
    }
  }
}

bool StillOverlay::still(const Edge& e) const {
  return e.strength >= kEdge * pictures_ && std::abs(e.x) + std::abs(e.y) >= kKept * e.strength;
}

bool StillOverlay::can_tell() const {
  if (pictures_ < kFewPictures) return false;
  std::int64_t all = 0, stand = 0, move = 0;
  for (const Edge& e : edges_) {
    if (e.strength < kFaintEdge * pictures_) continue;
    ++all;
    stand += still(e);
    move += std::abs(e.x) + std::abs(e.y) < kLost * e.strength;
  }
  const auto n = static_cast<double>(all);
  return all > 0 && static_cast<double>(stand) <= kMostStill * n &&
         static_cast<double>(move) >= kLeastMoving * n;
}

std::optional<PixelArea> StillOverlay::find(const PixelArea& area) const {
  if (!can_tell()) return std::nullopt;
  Grouping grouping(columns_, rows_);
  const int size = factor_ * kPixelStep;  // pixels from one edge to the next
  // The border between a bar and the picture is still.
  constexpr int kBorder = 3;
  const auto from = [&](int at) { return at == 0 ? 0 : at / size + kBorder; };
  const auto to = [&](int at, int full, int count) {
    return at >= full ? count : at / size - kBorder;
  };
  const int right = std::min(columns_, to(area.right, width_ * factor_, columns_));
  const int bottom = std::min(rows_, to(area.bottom, height_ * factor_, rows_));
  // The middle of a zoom is still.
  const auto middle = [](int at, int count) { return 5 * at >= 2 * count && 5 * at <= 3 * count; };
  for (int y = from(area.top); y < bottom; ++y)
    for (int x = from(area.left); x < right; ++x) {
      if (middle(x, columns_) && middle(y, rows_)) continue;
      if (still(edges_[static_cast<std::size_t>(y) * static_cast<std::size_t>(columns_) +
                       static_cast<std::size_t>(x)]))
        grouping.add(x, y);
    }
  const Group group = grouping.largest();
  const PixelArea box{group.box.left * size, group.box.top * size, (group.box.right + 1) * size,
                      (group.box.bottom + 1) * size};
  if (group.edges < kFewInAll || static_cast<double>(box.width()) * box.height() >
                                     kMostArea * static_cast<double>(area.width()) * area.height())
    return std::nullopt;
  return box;
}

}  // namespace vfm::curate
