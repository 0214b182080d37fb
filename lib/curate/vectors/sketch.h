// Computes sketches of vectors. A sketch is a short vector of whole numbers. The dot product of two
// sketches is an upper bound for the cosine of their vectors.
//
// A sketch (h, r) describes a unit vector a. The coordinates of a in an orthonormal basis of few
// directions are h, and the length of the remainder is r. For the sketches of a and b, a.b <=
// h_a.h_b + r_a r_b (Cauchy and Schwarz). The basis has the directions of the largest second
// moments of a sample, found by subspace iteration (Halko, Martinsson and Tropp, "Finding structure
// with randomness", 2011, section 4.5).
//
// The numbers of a sketch are multiplied by kSketchScale and stored in 16 bits. The product of two
// sketches is exact in 32 bits on every processor.
// Thread-safety: any thread, except train().
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "share/slots.h"

namespace vfm::curate {

inline constexpr int kSketchScale = 32000;
/// The largest rounding error of the upper bound. The product of two sketches, divided by
/// kSketchScale squared, is at least the cosine minus kSketchSlack.
inline constexpr double kSketchSlack = 6e-4;
inline constexpr std::size_t kWidestSketch = 128;
/// If vectors have more numbers than kLongestTrained, the basis consists of the first coordinate
/// axes.
inline constexpr std::size_t kLongestTrained = 65536;

class Sketcher {
 public:
  /// Finds the basis from `rows`, unit vectors of `dim` numbers. The sketches will have `width`
  /// numbers, a multiple of 32 up to kWidestSketch. The same rows in the same order give the same
  /// basis. Throws Stopped.
  static Sketcher train(const std::vector<float>& rows, std::size_t dim, std::size_t width,
                        share::Slots& slots);

  std::size_t width() const { return width_; }
  /// Writes the sketches of `n` rows to `out`. The rows must be scaled by to_unit_row()
  /// (curate/vectors/dedup.h).
  void sketch(const float* rows, std::size_t n, std::int16_t* out) const;

 private:
  Sketcher(std::size_t dim, std::size_t width) : dim_(dim), width_(width) {}

  std::size_t dim_, width_;
  std::vector<float> tiles_;  // basis, sixteen directions a tile, or empty for the first axes
};

/// The number of sketches in a tile. A tile interleaves its sketches in pairs of numbers.
inline constexpr std::size_t kTileSide = 32;
/// Fills a tile with `n` sketches (at most kTileSide), then with zeros.
void fill_tile(const std::int16_t* const* sketches, std::size_t n, std::size_t width,
               std::int16_t* tile);
/// The products of four sketches and a tile. Element [r][j] is the exact product of sketch r and
/// the tile's sketch j.
using TileProducts = std::int32_t[4][kTileSide];
void tile_products(const std::int16_t* const* four, std::size_t width, const std::int16_t* tile,
                   TileProducts& out);
/// Returns the dot product of two rows. For vectors of length 1, the error is at most 1e-5.
float float_product(const float* a, const float* b, std::size_t dim);
std::int32_t sketch_product(const std::int16_t* a, const std::int16_t* b, std::size_t width);

}  // namespace vfm::curate
