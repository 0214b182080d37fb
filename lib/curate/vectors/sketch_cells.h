// Divides sketches into cells, so that a search for neighbours compares only a few cells. A sketch
// belongs to the centre with which its product is largest.
//
// Centres are sketches, found by a few rounds of spherical k-means from evenly spaced rows of a
// sample. Cells therefore have similar sizes. Only whole numbers are used, so results are the same
// on every processor.
//
// The cells to search follow from this: let a and b be at most a distance D apart, c the centre of
// a, and e another centre. If b lies in the cell of e, then b.e >= b.c, so (b - a).(e - c) >= a.c -
// a.e. The left side is at most D |e - c|, so the distance of a from the border of the cells, (a.c
// - a.e) / |e - c|, is at most D. Cells further away need no search. D is reached only if b lies
// straight across the border; in high dimensions most neighbours lie along the border. With a
// `margin` below 1, only cells within margin * D are searched; with `margin` 1 no neighbour is
// missed.
//
// Equal rows of the sample may give equal centres. Only the first of equal centres gets sketches;
// the cells of the other equal centres are empty and never searched.
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
  /// Finds `wanted` centres of `sample`: sketches of `width` numbers, in random order, at least as
  /// many as centres. Throws Stopped.
  static SketchCells find(const std::vector<std::int16_t>& sample, std::size_t width,
                          std::size_t wanted, share::Slots& slots);

  std::size_t count() const { return count_; }
  /// Writes the nearest cell of each of `n` sketches: the first of equally near cells.
  void nearest(const std::int16_t* sketches, std::size_t n, std::uint32_t* cells) const;

  struct Reach {
    double distance = 0;   ///< D: sqrt(2 - 2 cosine) of vectors
    double margin = 1;     ///< share of `distance` that is searched, 0 to 1
    std::size_t most = 0;  ///< highest number of cells searched
  };
  struct Near {
    std::vector<std::uint32_t> cells;  ///< the sketch's own cell, then cells by distance of border
    bool all = true;                   ///< false: cells were left out because of `most`
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
  std::vector<bool> repeats_;          // centres that equal an earlier one
};

}  // namespace vfm::curate
