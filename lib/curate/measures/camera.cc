// SPDX-License-Identifier: Apache-2.0
#include "curate/measures/camera.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

namespace vfm::curate {
namespace {

constexpr int kCoarsest = 16;
constexpr int kSteps = 6;
constexpr int kCameraCells = 4;
constexpr double kDetail = 0.015;     // minimum mean |gradient| per pixel of a detailed cell
constexpr int kDetailedCells = 10;    // of 16
constexpr double kStillError = 4e-5;  // mean squared difference of a cell where nothing moves
constexpr double kExplained = 0.5;    // share of the difference that the shift must remove

bool sample(const std::vector<float>& image, int size, double x, double y, double& value) {
  if (!(x >= 0 && y >= 0 && x <= size - 1 && y <= size - 1)) return false;
  const int x0 = std::min(static_cast<int>(x), size - 2),
            y0 = std::min(static_cast<int>(y), size - 2);
  const double fx = x - x0, fy = y - y0;
  const float* p = &image[static_cast<std::size_t>(y0 * size + x0)];
  value = (p[0] * (1 - fx) + p[1] * fx) * (1 - fy) + (p[size] * (1 - fx) + p[size + 1] * fx) * fy;
  return true;
}

/// Solves a symmetric 3x3 system by Cramer's rule. Returns nullopt if it is nearly singular.
std::optional<std::array<double, 3>> solve(const double (&a)[3][3], const double (&b)[3]) {
  const auto minor = [&](int r0, int r1, int c0, int c1) {
    return a[r0][c0] * a[r1][c1] - a[r0][c1] * a[r1][c0];
  };
  const double cof[3] = {minor(1, 2, 1, 2), -minor(1, 2, 0, 2), minor(1, 2, 0, 1)};
  const double det = a[0][0] * cof[0] + a[0][1] * cof[1] + a[0][2] * cof[2];
  if (std::abs(det) < 1e-9 * a[0][0] * a[1][1] * a[2][2] || det == 0) return std::nullopt;
  std::array<double, 3> x{};
  for (int k = 0; k < 3; ++k) {
    double m[3][3];
    for (int r = 0; r < 3; ++r)
      for (int c = 0; c < 3; ++c)
        m[r][c] = c == k ? b[r] : a[r][c];
    x[static_cast<std::size_t>(k)] = (m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[2][1]) -
                                      m[0][1] * (m[1][0] * m[2][2] - m[1][2] * m[2][0]) +
                                      m[0][2] * (m[1][0] * m[2][1] - m[1][1] * m[2][0])) /
                                     det;
  }
  return x;
}

/// Returns the mean squared difference with shift `s`. If `update`, takes one Gauss-Newton step.
double refine(const std::vector<float>& before, const std::vector<float>& after, int size, Shift& s,
              bool update) {
  double a[3][3] = {}, b[3] = {}, squares = 0;
  int count = 0;
  const double centre = (size - 1) / 2.0;
  for (int y = 1; y + 1 < size; ++y)
    for (int x = 1; x + 1 < size; ++x) {
      const double rx = x - centre, ry = y - centre;
      const double wx = x + s.dx + s.zoom * rx, wy = y + s.dy + s.zoom * ry;
      double value, left, right, above, below;
      if (!sample(after, size, wx, wy, value) || !sample(after, size, wx - 1, wy, left) ||
          !sample(after, size, wx + 1, wy, right) || !sample(after, size, wx, wy - 1, above) ||
          !sample(after, size, wx, wy + 1, below))
        continue;
      const double difference = before[static_cast<std::size_t>(y * size + x)] - value;
      const double gx = (right - left) / 2, gy = (below - above) / 2;
      const double j[3] = {gx, gy, gx * rx + gy * ry};
      for (int r = 0; r < 3; ++r) {
        b[r] += j[r] * difference;
        for (int c = 0; c < 3; ++c)
          a[r][c] += j[r] * j[c];
      }
      squares += difference * difference;
      ++count;
    }
  if (update)
    if (const auto step = solve(a, b)) {
      const double far = size / 4.0;
      s.dx = std::clamp(s.dx + (*step)[0], -far, far);
      s.dy = std::clamp(s.dy + (*step)[1], -far, far);
      s.zoom = std::clamp(s.zoom + (*step)[2], -0.3, 0.3);
    }
  return count > 0 ? squares / count : 0;
}

/// The mean |gradient| of `before` and the mean squared difference to `after`, for 4x4 cells.
struct Cells {
  double detail[kCameraCells * kCameraCells] = {};
  double change[kCameraCells * kCameraCells] = {};

  Cells(const std::vector<float>& before, const std::vector<float>& after, int size) {
    const int cell = size / kCameraCells;
    const double mean = 1.0 / (cell * cell);
    for (int y = 0; y + 1 < size; ++y)
      for (int x = 0; x + 1 < size; ++x) {
        const auto i = static_cast<std::size_t>(y * size + x);
        const float* p = &before[i];
        const int at = y / cell * kCameraCells + x / cell;
        const double difference = after[i] - p[0];
        detail[at] += mean * (std::abs(p[1] - p[0]) + std::abs(p[size] - p[0]));
        change[at] += mean * difference * difference;
      }
  }
  int detailed() const {
    return static_cast<int>(std::count_if(detail, detail + kCameraCells * kCameraCells,
                                          [](double d) { return d > kDetail; }));
  }
  bool still() const {
    int unmoved = 0;
    for (int i = 0; i < kCameraCells * kCameraCells; ++i)
      unmoved += detail[i] > kDetail && change[i] <= kStillError;
    return 3 * unmoved >= 2 * detailed();
  }
};

double middle(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

Shift estimate_shift(const std::vector<float>& before, const std::vector<float>& after, int size) {
  Shift shift;
  if (size > kCoarsest) {
    shift = estimate_shift(halve(before, size), halve(after, size), size / 2);
    shift.dx *= 2;
    shift.dy *= 2;
  }
  Shift none;
  const double error_before = refine(before, after, size, none, false);
  for (int i = 0; i < kSteps; ++i)
    refine(before, after, size, shift, true);
  double error_after = refine(before, after, size, shift, false);
  if (error_after > error_before) {
    shift = none;
    error_after = error_before;
  }
  shift.error_before = error_before;
  shift.error_after = error_after;
  return shift;
}

CameraMotion camera_motion(const Glimpse& glimpse) {
  std::vector<double> right, up, zoom;
  for (std::size_t i = 0; i < glimpse.later.size(); ++i) {
    const auto before = luma_of(glimpse.pictures[i]), after = luma_of(glimpse.later[i]);
    const Cells cells(before, after, kGlimpseSize);
    if (cells.detailed() < kDetailedCells) continue;
    const bool still = cells.still();
    const Shift shift = still ? Shift{} : estimate_shift(before, after, kGlimpseSize);
    if (!still && shift.error_after > (1 - kExplained) * shift.error_before) continue;
    right.push_back(-shift.dx / kGlimpseSize);
    up.push_back(shift.dy / kGlimpseSize);
    zoom.push_back(shift.zoom);
  }
  CameraMotion camera;
  // If less than two thirds of the pairs show motion, the result is chance.
  if (right.empty() || right.size() * 3 < glimpse.later.size() * 2 || glimpse.lag <= 0)
    return camera;
  camera.known = true;
  camera.right = middle(right) / glimpse.lag;
  camera.up = middle(up) / glimpse.lag;
  camera.zoom = middle(zoom) / glimpse.lag;
  return camera;
}

}  // namespace vfm::curate
