// Divides sketches into cells, so that a search for neighbours compares only a few cells. A sketch
// belongs to the cell whose centre has the largest dot product with the sketch.
//
// Centres are sketches, found by spherical k-means. The results are the same on every processor.
//
// The cells to search are chosen as follows. Let a and b be two sketches at a distance of at most
// D, c the centre of a, and e another centre. The distance of a from the border between the cells
// of c and e is (a.c - a.e) / |e - c|. If this distance is above D, b does not lie in the cell of
// e. With a `margin` below 1, a cell is searched only if its border is within margin * D of a. With
// `margin` 1, no neighbour is missed.
//
// If centres are equal, only the first of the equal centres gets sketches.
// Thread-safety: any thread, except find().
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "curate/vectors/sketch.h"
#include "share/slots.h"

namespace vfm::curate {

class SketchCells {
 public:
  /// Finds `wanted` centres of `sample`, which has sketches of `width` numbers in random order.
  /// `sample` must have at least `wanted` sketches. Throws Stopped.
  static SketchCells find(const std::vector<std::int16_t>& sample, std::size_t width,
                          std::size_t wanted, share::Slots& slots);

  std::size_t count() const { return count_; }
  /// Writes the nearest cell of each of `n` sketches, or the first of equally near cells.
  void nearest(const std::int16_t* sketches, std::size_t n, std::uint32_t* cells) const;

  struct Reach {
    double distance = 0;   ///< Largest distance D of two neighbours: sqrt(2 - 2 cosine).
    double margin = 1;     ///< From 0 to 1. Cells within margin * distance are searched.
    std::size_t most = 0;  ///< Largest number of cells to search.
  };
  struct Near {
    std::vector<std::uint32_t> cells;  ///< The sketch's own cell, then other cells, nearest first.
    bool all = true;                   ///< Set to false if Reach::most left out cells.
  };
  /// Finds the cells to search for neighbours of each of four sketches.
  void near(const std::int16_t* const* four, const Reach& reach, Near (&out)[4]) const;

 private:
  SketchCells(std::size_t width, std::size_t count) : width_(width), count_(count) {}
  void fill_tiles();
  void mark_repeats();
  void scores(const std::int16_t* const* four, std::vector<std::int32_t>& out) const;

  std::size_t width_, count_;
  std::vector<std::int16_t> centres_;  // count x width
  std::vector<std::int16_t> tiles_;    // centres_ as tiles (fill_tile())
  std::vector<bool> repeats_;          // whether a centre equals an earlier centre
};

}  // namespace vfm::curate
