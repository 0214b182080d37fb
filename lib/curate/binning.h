// Bins of samples that train together, by resolution, aspect ratio and duration.
//
// The edges of an axis split (0, infinity) into half-open intervals without gaps: below the first
// edge, between two edges, and from the last edge on. Unknown values have intervals of their own
// ("unsized", "untimed"). Every sample therefore has exactly one bin. Images have a bin for each
// file format.
// Pure; thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace vfm::curate {

struct BinEdges {
  std::vector<double> resolution{256, 480, 720, 1080, 2160};  ///< the shorter side, pixels
  std::vector<double> aspect{0.65, 0.88, 1.16, 1.55};         ///< width / height
  std::vector<double> seconds{2, 5, 10, 30};
};

/// Parses positive, rising numbers, such as "256,480,720"; "none" means one interval without edges.
/// Throws Error{usage}, which names `option`.
std::vector<double> parse_edges(std::string_view text, std::string_view option);

struct BinFacts {
  double width = 0, height = 0;  ///< pixels; 0: not known
  double seconds = 0;            ///< 0: not known
  bool image = false;
  std::string extension;  ///< of the media member: "mp4", "jpg"; empty: no media
};

/// Returns the name of the bin and of its folder. "480p_16x9_5s" means [480, 720) pixels, an aspect
/// interval that contains 16:9, and [5, 10) seconds; "under256p_1x1_under2s" lies below the first
/// edges. Names for images end in the format ("720p_4x3_jpg"), and so do names for videos other
/// than mp4 ("720p_4x3_5s_webm"). Names for samples without media end in "nomedia". Names are
/// lower-case ASCII without dots: "2_5s" begins at 2.5.
std::string bin_name(const BinEdges& edges, const BinFacts& facts);

}  // namespace vfm::curate
