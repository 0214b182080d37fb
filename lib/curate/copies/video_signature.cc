// SPDX-License-Identifier: Apache-2.0
#include "curate/copies/video_signature.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace vfm::curate {
namespace {

constexpr double kPictureSeconds = 1.0 / kSignatureRate;

void add_row(const std::uint8_t* row, int width, unsigned weight, std::uint32_t* sums) {
  for (int x = 0; x < width; ++x)
    sums[x] += weight * row[x];
}

/// The range of cell `i` along a side of `size` pixels. In units of 1/32 pixel, a pixel is 32 wide,
/// a cell is `size` wide, and all limits are whole numbers.
struct CellRange {
  CellRange(int i, int size)
      : begin(static_cast<std::int64_t>(i) * size),
        end(begin + size),
        first(static_cast<int>(begin / kSignatureSide)),
        last(static_cast<int>((end - 1) / kSignatureSide)) {}
  unsigned weight(int pixel) const {
    const std::int64_t from =
        std::max<std::int64_t>(begin, static_cast<std::int64_t>(pixel) * kSignatureSide);
    const std::int64_t to =
        std::min<std::int64_t>(end, static_cast<std::int64_t>(pixel + 1) * kSignatureSide);
    return static_cast<unsigned>(to - from);
  }
  std::int64_t begin, end;
  int first, last;  ///< Pixels of the cell.
};

std::uint64_t sum_columns(const std::vector<std::uint32_t>& sums, const CellRange& range) {
  const auto column = [&](int x) { return std::uint64_t{sums[static_cast<std::size_t>(x)]}; };
  std::uint64_t total = range.weight(range.first) * column(range.first);
  if (range.last == range.first) return total;
  std::uint64_t inside = 0;
  for (int x = range.first + 1; x < range.last; ++x)
    inside += column(x);
  return total + inside * kSignatureSide + range.weight(range.last) * column(range.last);
}

/// Returns the cell of the stored picture that is displayed at (x, y).
std::size_t stored_cell(int x, int y, int rotation, bool mirror) {
  const int last = kSignatureSide - 1;
  int from_x = x, from_y = y;
  if (rotation == 90) from_x = y, from_y = last - x;
  if (rotation == 180) from_x = last - x, from_y = last - y;
  if (rotation == 270) from_x = last - y, from_y = x;
  if (mirror) from_x = last - from_x;
  return static_cast<std::size_t>(from_y * kSignatureSide + from_x);
}

}  // namespace

void cell_means(const LumaPlane& plane, std::array<float, kSignatureCells>& means) {
  std::vector<std::uint32_t> sums(static_cast<std::size_t>(plane.width));
  const double area = static_cast<double>(plane.width) * plane.height;
  for (int y = 0; y < kSignatureSide; ++y) {
    std::fill(sums.begin(), sums.end(), 0U);
    const CellRange rows(y, plane.height);
    for (int row = rows.first; row <= rows.last; ++row)
      add_row(plane.row(row), plane.width, rows.weight(row), sums.data());
    for (int x = 0; x < kSignatureSide; ++x) {
      const double mean = static_cast<double>(sum_columns(sums, CellRange(x, plane.width))) / area;
      const double full = plane.full_range ? mean : (mean - 16) * 255 / 219;
      means[static_cast<std::size_t>(y * kSignatureSide + x)] =
          static_cast<float>(std::clamp(full, 0.0, 255.0));
    }
  }
}

void SignatureMaker::push(const LumaPlane& plane, double end) {
  double left = end - shown_until_;
  if (!(left > 0)) return;
  shown_until_ = end;
  std::array<float, kSignatureCells> means;
  cell_means(plane, means);
  while (left > 0) {
    const double part = std::min(left, kPictureSeconds - filled_);
    const auto weight = static_cast<float>(part);
    for (std::size_t i = 0; i < kSignatureCells; ++i)
      sum_[i] += weight * means[i];
    filled_ += part;
    left -= part;
    if (filled_ >= kPictureSeconds - 1e-9) end_picture();
  }
}

void SignatureMaker::end_picture() {
  SignaturePicture picture;
  const auto scale = static_cast<float>(1 / filled_);
  for (int y = 0; y < kSignatureSide; ++y)
    for (int x = 0; x < kSignatureSide; ++x)
      picture[static_cast<std::size_t>(y * kSignatureSide + x)] =
          static_cast<std::uint16_t>(std::lround(
              kLevelParts * std::min(255.0F, scale * sum_[stored_cell(x, y, rotation_, mirror_)])));
  sum_.fill(0);
  filled_ = 0;
  ++count_;
  take_(picture);
}

void SignatureMaker::finish() {
  if (filled_ >= kPictureSeconds / 2) end_picture();
}

}  // namespace vfm::curate
