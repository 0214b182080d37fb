// Plans the parts of a pack that ranks of context parallelism have if parts end at frames: whole
// frames for attention within frames, and whole pixels (places) for attention within pixels.
//
// A pack's tokens stand sample by sample, frame by frame, place by place. Frames in this order are
// cut into one part for each rank, so that the heaviest part is as light as possible. If there are
// fewer frames than ranks, some ranks have none. For attention within pixels, a sample that one
// rank has whole, such as an image, stays on that rank. The places of the other samples, in the
// same order, are divided so that all ranks have equal work, counting the samples that stay. So a
// rank has one range of frames and one range of places of each sample, and these ranges determine
// which tokens move. The plan is a pure function of the sizes: all ranks compute the same plan.
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

/// The work of a token in a block. The unit is the work of a query and one key: 2 D multiply-adds.
struct FrameWork {
  std::int64_t in_frames = 1;  ///< products of all layers but the temporal one: 5 D + H
  std::int64_t in_pixels = 1;  ///< products of the temporal one: 2 D
  bool queries_stay = true;    ///< a token's full attention is on the rank of its frame
  bool operator==(const FrameWork&) const = default;
};

/// A range of the frames, or of the places, of one sample.
using GridRange = ops::RowRange;

struct FramePlan {
  /// tp cuts a rank's tokens into `sections` parts, one after the other. Places are numbered so
  /// that a range of them has equally many places in each such section of a frame.
  FramePlan(std::span<const ops::TokenGrid> grids, int ranks, const FrameWork& work,
            int sections = 1);

  int ranks() const { return static_cast<int>(frames.size()); }
  /// Returns the pack's rows of a rank's frames: one range for each sample.
  std::vector<ops::RowRange> rows(int rank) const;
  /// Returns the pack's rows of a rank's places, in the order of attention within pixels: sample by
  /// sample, place by place, frame by frame.
  std::vector<std::int64_t> pixel_rows(int rank) const;
  std::int64_t tokens_of_frames(int rank) const;
  std::int64_t tokens_of_places(int rank) const;
  /// Returns the number of tokens in the frames of `from` and the places of `to`.
  std::int64_t moved(int from, int to) const;

  std::vector<ops::TokenGrid> grids;
  int sections = 1;
  std::vector<std::vector<GridRange>> frames, places;  ///< by rank, then by sample
};

/// Returns the place that has this number among the `places` of a frame, cut into `sections`
/// sections.
std::int64_t numbered_place(std::int64_t number, std::int64_t places, int sections);

/// Cuts things in a row into base.size() parts, and returns the ends of the parts. until[i] is the
/// sum of the weights of the things before i. Part r weighs base[r] more than its things. The
/// heaviest part is as light as possible; within that limit, parts are near their mean. With
/// `each_some` (bases must be 0) no part is empty; if there are fewer things than parts, no part
/// has two.
std::vector<std::int64_t> even_ends(std::span<const std::int64_t> until,
                                    std::span<const std::int64_t> base, bool each_some);

}  // namespace vfm::nn
