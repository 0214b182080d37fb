// What ranks exchange that have a band of a picture's rows each, so that a network over it computes
// the same on bands as on the whole: the rows next to a cut, statistics of a frame, and all rows
// where everything attends to everything. Exact, unlike tiles that overlap and are blended.
//
// A norm over a frame is why bands of one picture have to be there together: no row of a layer can
// be had before all rows of the layer before it. So bands serve ranks, and not one rank that has
// too little memory. On the CPU a frame's statistics have the bits of the whole frame's: they are
// sums over stretches of its pixels (ops/norm/frame_norm.h), each added up by one rank, which gets
// from its neighbours what it has not of a stretch that a cut divides. On a GPU each takes the
// moments of its band, and those of the frame are made of these, to rounding.
//
// Errors, thread-safety: those of the group (dist/group.h). All ranks of the line call the same
// functions in the same order.
// Shape letters: T frames, H rows of this band, W columns, C channels.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "models/cosmos/rank_line.h"
#include "tensor/tensor.h"

namespace vfm::models {

/// Where each of `bands` bands of so many rows begins, and behind them where the last one ends: as
/// even as can be.
std::vector<std::int64_t> band_rows(std::int64_t rows, int bands);

class SpatialExchange {
 public:
  /// Of a picture whose latent has so many rows, at least one for each rank of the line; the one at
  /// place 0 has the top band.
  SpatialExchange(const RankLine& line, std::int64_t rows);

  int parts() const { return line_.size(); }
  int part() const { return line_.place(); }
  bool first() const { return part() == 0; }
  bool last() const { return part() + 1 == parts(); }
  /// The latent rows of a band: its first, and the one behind its last.
  std::int64_t begin(int part) const { return rows_[static_cast<std::size_t>(part)]; }
  std::int64_t end(int part) const { return begin(part + 1); }

  /// Of a layer's x [T, H, W, C]: which pixel of the whole frames its first one is, and how many
  /// these have.
  std::int64_t first_pixel(const Tensor& x) const { return pixels_above(part(), x); }
  std::int64_t frame_pixels(const Tensor& x) const { return pixels_above(parts(), x); }

  /// x [T, H, W, C] with the last row of the band above before its own, where that is wanted and
  /// there is one, and the first row of the band below behind.
  Tensor with_neighbours(const Tensor& x, bool above) const;
  /// Moments [T, 2] (ops/norm/frame_norm.h) of the whole frames of which x is a band.
  Tensor whole_moments(const Tensor& x) const;
  /// The bands of x [T, H, W, C], one under the other.
  Tensor gather_rows(const Tensor& x) const;

 private:
  class Stretches;
  std::int64_t rows_above(int part, const Tensor& x) const;
  std::int64_t pixels_above(int part, const Tensor& x) const {
    return rows_above(part, x) * x.size(2);
  }
  Tensor cut_stretch(const Stretches& all, const Tensor& x) const;
  std::vector<Tensor> share(const Tensor& own, const std::vector<std::int64_t>& counts) const;
  Tensor moments_of_bands(const Tensor& x) const;

  const RankLine line_;
  const std::vector<std::int64_t> rows_;  // of band_rows()
};

}  // namespace vfm::models
