// Sketches of vectors: a few whole numbers for each vector, whose products bound the cosine of two
// vectors.
//
// For a unit vector a, let h be its coordinates in an orthonormal basis of few directions, and r
// the length of the remainder. Then a.b <= h_a.h_b + r_a r_b (Cauchy and Schwarz). The right side
// is the product of the sketches (h_a, r_a) and (h_b, r_b), which are unit vectors no further apart
// than a and b. If two sketches are too far apart, the vectors are too far apart, too. The basis
// has the directions of a sample's largest second moments, found by subspace iteration (Halko,
// Martinsson and Tropp, "Finding structure with randomness", 2011, section 4.5).
//
// A sketch is (h, r) times kSketchScale in 16 bits, r rounded up. The product of two sketches is
// exact in 32 bits on every processor. Rounding errors together are below kSketchSlack.
// Thread-safety: any thread, except train().
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "share/slots.h"

namespace vfm::curate {

inline constexpr int kSketchScale = 32000;
/// The most by which a product of sketches, divided by kSketchScale squared, may fall below the
/// cosine: 4e-4 for half a unit in each of 128 numbers of both, and the error of float sums.
inline constexpr double kSketchSlack = 6e-4;
inline constexpr std::size_t kWidestSketch = 128;
/// For longer vectors the basis is the first axes.
inline constexpr std::size_t kLongestTrained = 65536;

class Sketcher {
 public:
  /// Finds the basis from `rows`, unit vectors of `dim` numbers. A sketch has `width` numbers, a
  /// multiple of 32 up to kWidestSketch. The same rows in the same order give the same basis.
  /// Throws Stopped.
  static Sketcher train(const std::vector<float>& rows, std::size_t dim, std::size_t width,
                        share::Slots& slots);

  std::size_t width() const { return width_; }
  /// Sketches `n` rows of to_unit_row() (curate/vectors/dedup.h).
  void sketch(const float* rows, std::size_t n, std::int16_t* out) const;

 private:
  Sketcher(std::size_t dim, std::size_t width) : dim_(dim), width_(width) {}

  std::size_t dim_, width_;
  std::vector<float> tiles_;  // the basis, sixteen directions side by side; empty: the first axes
};

/// A tile has kTileSide sketches, interleaved in pairs of numbers, for tile_products().
inline constexpr std::size_t kTileSide = 32;
/// Fills a tile with `n` sketches, at most kTileSide, and zeros.
void fill_tile(const std::int16_t* const* sketches, std::size_t n, std::size_t width,
               std::int16_t* tile);
/// out[r][j] = the exact product of sketch r of `four` and sketch j of the tile.
using TileProducts = std::int32_t[4][kTileSide];
void tile_products(const std::int16_t* const* four, std::size_t width, const std::int16_t* tile,
                   TileProducts& out);
/// Returns the product of two rows, summed in any order. The result is accurate to 1e-5 for vectors
/// of length 1.
float float_product(const float* a, const float* b, std::size_t dim);
std::int32_t sketch_product(const std::int16_t* a, const std::int16_t* b, std::size_t width);

}  // namespace vfm::curate
