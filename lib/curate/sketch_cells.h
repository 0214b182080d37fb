// Cells of sketches: each belongs to the centre with which its product is the largest.
//
// Centres are sketches themselves, found by a few rounds of spherical k-means from rows of a sample
// that are evenly spaced: so dense places have many, and cells are of about one size, which is what
// comparing within them asks for. (curate/clusters.h has k-means++ and more rounds, for clusters
// that mean something.) All is done in whole numbers: sums have no order, and the result is the
// same on every processor.
//
// Where a pair may be: let a and b be at most a distance D apart, c the centre of a, and e another
// one. If b lies in the cell of e, then b.e >= b.c, so (b - a).(e - c) >= a.c - a.e, and as the
// left is at most D |e - c|, the distance of a from the border between the two,
// (a.c - a.e) / |e - c|, is at most D. Cells further off need not be looked at. That is the worst
// case, of a b that lies straight across the border; in many directions nearly all of them go along
// it. A `margin` below 1 looks at the cells within margin * D alone: at 1 nothing can be missed.
//
// Where many of the sample are the same, so are centres: the first of them has the cell, and those
// of the others are empty, and are never looked at.
// Thread-safety: any thread, but for find().
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/slots.h"
#include "curate/sketch.h"

namespace vfm::curate {

class SketchCells {
 public:
  /// `sample`: some sketches of `width` numbers, in an order that means nothing. `wanted`: how many
  /// centres, of the sample's rows at most. Throws Stopped.
  static SketchCells find(const std::vector<std::int16_t>& sample, std::size_t width,
                          std::size_t wanted, Slots& slots);

  std::size_t count() const { return count_; }
  /// The cell of each of `n` sketches, the first of equals.
  void nearest(const std::int16_t* sketches, std::size_t n, std::uint32_t* cells) const;

  struct Reach {
    double distance = 0;   ///< D: sqrt(2 - 2 cosine) of vectors
    double margin = 1;     ///< of it
    std::size_t most = 0;  ///< cells that are looked at
  };
  struct Near {
    std::vector<std::uint32_t> cells;  ///< the own one first, then the nearest border first
    bool all = true;                   ///< false: `most` left some out
  };
  /// Cells in which those may lie that are near to each of four sketches.
  void near(const std::int16_t* const* four, const Reach& reach, Near (&out)[4]) const;

 private:
  SketchCells(std::size_t width, std::size_t count) : width_(width), count_(count) {}
  void fill_tiles();
  void mark_repeats();
  void scores(const std::int16_t* const* four, std::vector<std::int32_t>& out) const;

  std::size_t width_, count_;
  std::vector<std::int16_t> centres_;  // count x width
  std::vector<std::int16_t> tiles_;    // the same (fill_tile())
  std::vector<bool> repeats_;          // those that an earlier one equals
};

}  // namespace vfm::curate
