// SPDX-License-Identifier: Apache-2.0
#include "curate/shots/same_view.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

namespace vfm::curate {
namespace {

constexpr int kHalfSide = kLumaSide / 2;
constexpr int kSideParts = 4;
constexpr int kPart = kLumaSide / kSideParts;  // side of a part, in cells
constexpr int kNear = 3;                       // cells by which the motion of a part may differ

template <int kSide>
using Edges = std::array<std::int16_t, static_cast<std::size_t>(kSide) * kSide>;

/// Computes four times the difference of each cell from its four neighbours, 0 at the border.
template <int kSide>
void find_edges(const std::uint8_t* p, const ActiveArea& area, Edges<kSide>& out) {
  constexpr int kShrink = kLumaSide / kSide;
  out.fill(0);
  for (int y = area.top / kShrink + 1; y < area.bottom / kShrink - 1; ++y)
    for (int i = y * kSide + area.left / kShrink + 1; i < y * kSide + area.right / kShrink - 1; ++i)
      out[i] =
          static_cast<std::int16_t>(4 * p[i] - p[i - 1] - p[i + 1] - p[i - kSide] - p[i + kSide]);
}

struct Offset {
  int x = 0, y = 0;
};

struct EdgeProducts {
  float aa = 0, bb = 0, ab = 0, n = 0;
  float correlation(float floor) const {
    return ab / std::sqrt((aa + floor * n) * (bb + floor * n));
  }
};

/// Sums over the box [left, right) x [top, bottom) of `b`, and of `a` shifted by `s`.
template <int kSide>
EdgeProducts products(const Edges<kSide>& a, const Edges<kSide>& b, int left, int top, int right,
                      int bottom, Offset s) {
  left = std::max({left, s.x, 0}), right = std::min({right, kSide + s.x, kSide});
  top = std::max({top, s.y, 0}), bottom = std::min({bottom, kSide + s.y, kSide});
  EdgeProducts out;
  if (left >= right || top >= bottom) return out;
  for (int y = top; y < bottom; ++y) {
    const std::int16_t* p = a.data() + (y - s.y) * kSide - s.x;
    const std::int16_t* q = b.data() + y * kSide;
    std::int32_t aa = 0, bb = 0, ab = 0;  // a row has 64 squares of at most 1020
    for (int x = left; x < right; ++x)
      aa += p[x] * p[x], bb += q[x] * q[x], ab += p[x] * q[x];
    out.aa += static_cast<float>(aa), out.bb += static_cast<float>(bb);
    out.ab += static_cast<float>(ab);
  }
  out.n = static_cast<float>((right - left) * (bottom - top));
  return out;
}

constexpr float kFloor = 16;  // squared noise of an edge

/// Returns the shift of the whole picture, up to half a side. Searches pictures of half the side.
Offset shift_of_edges(const SmallPicture& a, const SmallPicture& b, const ActiveArea& area) {
  std::array<std::uint8_t, kChromaCells> p, q;
  halve_luma(a, p), halve_luma(b, q);
  Edges<kHalfSide> ea, eb;
  find_edges<kHalfSide>(p.data(), area, ea), find_edges<kHalfSide>(q.data(), area, eb);
  Offset best;
  float most = -1;
  constexpr int kReach = kHalfSide / 2;
  for (int y = -kReach; y <= kReach; ++y) {
    for (int x = -kReach; x <= kReach; ++x) {
      const EdgeProducts s = products<kHalfSide>(ea, eb, 0, 0, kHalfSide, kHalfSide, {x, y});
      const float c = s.correlation(kFloor);
      if (c > most) most = c, best = {2 * x, 2 * y};
    }
  }
  return best;
}

/// The result of looking for the edges of a part of `b` in `a`, shifted by about `whole`.
struct Part {
  bool edged = false, same = false;
  EdgeProducts products;  // if `same`
};
Part compare_part(const Edges<kLumaSide>& a, const Edges<kLumaSide>& b, int column, int row,
                  Offset whole) {
  constexpr float kEdged = 16, kAlike = 0.5f, kPlaced = 0.2f;
  const auto moved = [&](int x, int y) {
    return products<kLumaSide>(a, b, column * kPart, row * kPart, (column + 1) * kPart,
                               (row + 1) * kPart, {x, y});
  };
  Part part;
  float best = -1;
  Offset at;
  for (int y = whole.y - kNear; y <= whole.y + kNear; ++y) {
    for (int x = whole.x - kNear; x <= whole.x + kNear; ++x) {
      const EdgeProducts s = moved(x, y);
      if (s.n < kPart * kPart / 2 || std::max(s.aa, s.bb) < kEdged * s.n) continue;
      part.edged = true;
      if (const float c = s.correlation(kFloor / 4); c > best)
        best = c, at = {x, y}, part.products = s;
    }
  }
  if (best < kAlike) return part;
  // A straight edge, as of a split screen, a frame or a table, is in many scenes and fits at all
  // places along the edge.
  float along = -1;
  for (const int d : {-kNear - 1, kNear + 1})
    along = std::max({along, moved(at.x + d, at.y).correlation(kFloor / 4),
                      moved(at.x, at.y + d).correlation(kFloor / 4)});
  part.edged = part.same = best > along + kPlaced;
  return part;
}

struct Sums {
  double n = 0, a = 0, b = 0, aa = 0, bb = 0, apart = 0;
};
Sums sums(const SmallPicture& a, const SmallPicture& b, const ActiveArea& area) {
  std::uint32_t sa = 0, sb = 0, saa = 0, sbb = 0, apart = 0;  // 4096 * 255^2 < 2^32
  for (int y = area.top; y < area.bottom; ++y) {
    for (int i = y * kLumaSide + area.left; i < y * kLumaSide + area.right; ++i) {
      const std::uint32_t p = a.y[i], q = b.y[i];
      sa += p, sb += q, saa += p * p, sbb += q * q, apart += p > q ? p - q : q - p;
    }
  }
  const double n = static_cast<double>(area.right - area.left) * (area.bottom - area.top);
  return {n, 1.0 * sa, 1.0 * sb, 1.0 * saa, 1.0 * sbb, 1.0 * apart};
}

/// Returns the box around the cells that change at least a quarter as much as the most changed
/// cell, plus one cell on each side, which may be partly changed.
ActiveArea changed_box(const SmallPicture& a, const SmallPicture& b, const ActiveArea& area) {
  constexpr int kQuarter = 4;
  const auto change = [&](int x, int y) {
    const int i = y * kLumaSide + x;
    return std::abs(int{a.y[i]} - int{b.y[i]});
  };
  int most = 0;
  for (int y = area.top; y < area.bottom; ++y)
    for (int x = area.left; x < area.right; ++x)
      most = std::max(most, change(x, y));
  ActiveArea box{area.right, area.bottom, area.left, area.top};
  for (int y = area.top; y < area.bottom; ++y)
    for (int x = area.left; x < area.right; ++x)
      if (kQuarter * change(x, y) >= most) box = join(box, {x, y, x + 1, y + 1});
  return {std::max(box.left - 1, area.left), std::max(box.top - 1, area.top),
          std::min(box.right + 1, area.right), std::min(box.bottom + 1, area.bottom)};
}

double box_variance(const SmallPicture& p, int left, int top, int right, int bottom) {
  std::array<std::uint8_t, kChromaCells> luma;
  halve_luma(p, luma);
  const double n = (right - left) * (bottom - top);
  double variance = 0;
  const std::uint8_t* const planes[] = {luma.data(), p.u.data(), p.v.data()};
  for (const std::uint8_t* plane : planes) {
    std::int64_t sum = 0, squares = 0;
    for (int y = top; y < bottom; ++y)
      for (int i = y * kHalfSide + left; i < y * kHalfSide + right; ++i)
        sum += plane[i], squares += plane[i] * plane[i];
    variance += (static_cast<double>(squares) - static_cast<double>(sum * sum) / n) / n;
  }
  return variance;
}

/// Returns true if the overlap after a shift has enough of the pictures' detail.
bool shows_enough(const SmallPicture& a, const SmallPicture& b, int right, int down) {
  constexpr double kLeast = 0.03;
  const double both = box_variance(b, std::max(0, right), std::max(0, down),
                                   kHalfSide + std::min(0, right), kHalfSide + std::min(0, down));
  return both >= kLeast * std::max(box_variance(a, 0, 0, kHalfSide, kHalfSide),
                                   box_variance(b, 0, 0, kHalfSide, kHalfSide));
}

}  // namespace

SharedEdges shared_edges(const SmallPicture& a, const SmallPicture& b, const ActiveArea& area) {
  constexpr int kFew = 3;
  Edges<kLumaSide> ea, eb;
  find_edges<kLumaSide>(a.y.data(), area, ea), find_edges<kLumaSide>(b.y.data(), area, eb);
  const Offset whole = shift_of_edges(a, b, area);
  int edged = 0, same = 0, middle = 0;
  float first = 0, second = 0;
  for (int i = 0; i < kSideParts * kSideParts; ++i) {
    const int column = i % kSideParts, row = i / kSideParts;
    const Part part = compare_part(ea, eb, column, row, whole);
    edged += part.edged;
    if (part.same) ++same, first += part.products.aa, second += part.products.bb;
    const bool inner = column > 0 && column + 1 < kSideParts && row > 0 && row + 1 < kSideParts;
    if (inner && part.edged) middle += part.same ? 1 : -1;
  }
  SharedEdges out{0, whole.x, whole.y, 1};
  // Frames, logos and news bars are near the border, so the middle parts must agree.
  if (edged < kFew || same == 0 || middle < 0) return out;
  out.share = static_cast<float>(same) / static_cast<float>(edged);
  out.strength = std::sqrt(second / std::max(first, 1.f));
  return out;
}

WholeShift whole_shift(const SmallPicture& a, const SmallPicture& b) {
  std::array<std::uint8_t, kChromaCells> p, q;
  halve_luma(a, p), halve_luma(b, q);
  // Returns the sum of differences in the overlap, or any number above `most`.
  const auto difference = [&](int right, int down, int most) {
    const int left = std::max(0, right), end = kHalfSide + std::min(0, right);
    const int top = std::max(0, down), bottom = kHalfSide + std::min(0, down);
    int sum = 0;
    for (int y = top; y < bottom && sum <= most; ++y) {
      const int to = y * kHalfSide, from = (y - down) * kHalfSide - right;
      for (int x = left; x < end; ++x)
        sum += std::abs(q[to + x] - p[from + x]) + std::abs(b.u[to + x] - a.u[from + x]) +
               std::abs(b.v[to + x] - a.v[from + x]);
    }
    return sum;
  };
  constexpr int kReach = 3 * kHalfSide / 4, kAll = kHalfSide * kHalfSide;
  const int rest = difference(0, 0, kAll * 3 * 255);
  WholeShift out;
  // Cells outside the overlap count as the mean cell without a shift. Otherwise the best shift
  // would move a small thing out of the picture.
  int best = rest;
  for (int y = -kReach; y <= kReach; ++y) {
    for (int x = -kReach; x <= kReach; ++x) {
      const int both = (kHalfSide - std::abs(x)) * (kHalfSide - std::abs(y));
      if (4 * both < kAll) continue;
      const auto alone = static_cast<int>(std::int64_t{rest} * (kAll - both) / kAll);
      if (alone >= best) continue;
      const int sum = difference(x, y, best - alone);
      if (sum + alone >= best) continue;
      best = sum + alone;
      out = {2 * x, 2 * y, static_cast<float>(sum) * kAll / (static_cast<float>(rest) * both)};
    }
  }
  if (!shows_enough(a, b, out.right / 2, out.down / 2)) return {};
  return out;
}

bool differ_in_box(const SmallPicture& a, const SmallPicture& b, const ActiveArea& area) {
  constexpr double kMost = 1 / 3.0;   // of the picture
  constexpr double kSeen = 1.5;       // minimum standard deviation of luma with detail
  constexpr double kUnchanged = 0.4;  // largest difference of equal cells, in deviations
  const Sums all = sums(a, b, area), box = sums(a, b, changed_box(a, b, area));
  if (box.n > kMost * all.n) return false;
  const double n = all.n - box.n;
  const auto deviation = [n](double sum, double squares) {
    return std::sqrt(std::max(0.0, squares / n - sum / n * (sum / n)));
  };
  const double seen = std::min(deviation(all.a - box.a, all.aa - box.aa),
                               deviation(all.b - box.b, all.bb - box.bb));
  return seen > kSeen && (all.apart - box.apart) / n < kUnchanged * seen;
}

}  // namespace vfm::curate
