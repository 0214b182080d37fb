// The exchanges of ranks that each have a band of a picture's rows, so that a network computes the
// same on bands as on the whole picture. They exchange the rows next to a cut, the statistics of a
// frame, and all rows for attention within a frame. The result is exact, unlike tiles that overlap
// and are blended.
//
// A norm over a frame needs all bands at the same time: no row of a layer can be computed before
// all rows of the layer before it. So bands serve several ranks, not one rank with too little
// memory. On the CPU a frame's statistics have the bits of the whole frame. They are sums over
// stretches of pixels (ops/norm/frame_norm.h), each added up by one rank, which gets missing pixels
// of a stretch that a cut divides from its neighbours. On a GPU each rank computes the moments of
// its band, and the frame's moments are combined from them, equal up to rounding.
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

/// The first row of each of `bands` bands of `rows` rows, then the end of the last band. Bands are
/// as equal as possible.
std::vector<std::int64_t> band_rows(std::int64_t rows, int bands);

class SpatialExchange {
 public:
  /// `rows` is the number of latent rows of the picture, at least one per rank of the line. The
  /// rank at place 0 has the top band.
  SpatialExchange(const RankLine& line, std::int64_t rows);

  int parts() const { return line_.size(); }
  int part() const { return line_.place(); }
  bool first() const { return part() == 0; }
  bool last() const { return part() + 1 == parts(); }
  /// The latent rows [begin, end) of a band.
  std::int64_t begin(int part) const { return rows_[static_cast<std::size_t>(part)]; }
  std::int64_t end(int part) const { return begin(part + 1); }

  /// For a layer's x [T, H, W, C]: the number of its first pixel in the whole frame, and the number
  /// of pixels of a whole frame.
  std::int64_t first_pixel(const Tensor& x) const { return pixels_above(part(), x); }
  std::int64_t frame_pixels(const Tensor& x) const { return pixels_above(parts(), x); }

  /// x [T, H, W, C] with the first `rows` rows of the band below after it and, if `above`, the last
  /// ones of the band above before it. Each band has that many. A band that does not exist adds
  /// nothing.
  Tensor with_neighbours(const Tensor& x, bool above, std::int64_t rows = 1) const;
  /// Moments [T, 2] (ops/norm/frame_norm.h) of the whole frames; x is this rank's band.
  Tensor whole_moments(const Tensor& x) const;
  /// The bands x [T, H, W, C] of all ranks, from top to bottom.
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
  const std::vector<std::int64_t> rows_;  // result of band_rows()
};

}  // namespace vfm::models
