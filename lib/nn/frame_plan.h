// Which rank of context parallelism has what of a pack where parts end at frames: whole frames for
// attention within frames, and whole pixels (places) for attention within pixels.
//
// A pack's tokens stand sample by sample, frame by frame, place by place. Frames in this order are
// cut into one part a rank, so that the heaviest part is as light as it can be; a rank has none
// where there are fewer frames than ranks. For attention within pixels a sample that one rank has
// whole, as it has each image, stays there; the places of the others, in the same order, are dealt
// out so that all ranks have as much to do then, what stayed counted. So of each sample a rank has
// one range of frames and one of places, and what moves between the two follows from these ranges.
// A pure function of the sizes: all ranks come to the same.
// Source of the two ways to place tokens: NVIDIA, "Training video foundation models with NeMo"
// (2025), section 4.4. Shape letters: D width, H hidden width of the MLP.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ops/pointwise/row_ranges.h"
#include "ops/position/positions.h"

namespace vfm::nn {

/// What a token costs in a block, in units of 2 D multiply-adds: those of a query and one key.
struct FrameWork {
  std::int64_t in_frames = 1;  ///< products of all layers but the temporal one: 5 D + H
  std::int64_t in_pixels = 1;  ///< products of the temporal one: 2 D
  bool queries_stay = true;    ///< full attention is where the token's frame is
  bool operator==(const FrameWork&) const = default;
};

/// A range of things of one sample: frames, or places.
using GridRange = ops::RowRange;

struct FramePlan {
  /// `sections`: into how many parts, one after the other, tp cuts a rank's tokens. Places are
  /// numbered so that a range of them has as many of each such section of a frame.
  FramePlan(std::span<const ops::TokenGrid> grids, int ranks, const FrameWork& work,
            int sections = 1);

  int ranks() const { return static_cast<int>(frames.size()); }
  /// The pack's rows of a rank's frames: one range a sample.
  std::vector<ops::RowRange> rows(int rank) const;
  /// The pack's rows of a rank's places, in the order of attention within pixels: sample by
  /// sample, place by place, frame by frame.
  std::vector<std::int64_t> pixel_rows(int rank) const;
  std::int64_t tokens_of_frames(int rank) const;
  std::int64_t tokens_of_places(int rank) const;
  /// Tokens that are in the frames of `from` and in the places of `to`.
  std::int64_t moved(int from, int to) const;

  std::vector<ops::TokenGrid> grids;
  int sections = 1;
  std::vector<std::vector<GridRange>> frames, places;  ///< by rank, then by sample
};

/// The place that has this number among `places`, which `sections` cut.
std::int64_t numbered_place(std::int64_t number, std::int64_t places, int sections);

/// Cuts things in a row, of the weights that `until` sums up (until[i]: of those before i), into
/// base.size() parts, of which part r comes to weigh base[r] more: the ends of the parts. The
/// heaviest part is as light as can be; within that, parts are near their mean. `each_some`
/// (bases of zero): no part is empty, or if there are fewer things than parts none has two.
std::vector<std::int64_t> even_ends(std::span<const std::int64_t> until,
                                    std::span<const std::int64_t> base, bool each_some);

}  // namespace vfm::nn
