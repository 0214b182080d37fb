// Bins of samples that train together, by resolution, aspect ratio and duration.
//
// Every axis is cut at its edges into half-open intervals that cover (0, infinity) without a gap:
// below the first edge, between two, from the last one on. So every sample has exactly one bin;
// unknown values have intervals of their own ("unsized", "untimed"), and images have one per file
// format. Pure; thread-safety: any thread.
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

/// Parses "256,480,720": positive numbers, rising; "none" is an axis of one interval. `option`
/// stands in the error. Throws Error{usage}.
std::vector<double> parse_edges(std::string_view text, std::string_view option);

struct BinFacts {
  double width = 0, height = 0;  ///< pixels; 0: not known
  double seconds = 0;            ///< 0: not known
  bool image = false;
  std::string extension;  ///< of the media member: "mp4", "jpg"; empty: none
};

/// The bin's name, also that of its folder: "480p_16x9_5s" is [480, 720) pixels, an aspect interval
/// that holds 16:9, and [5, 10) seconds; "under256p_1x1_under2s" lies below the first edges. Images
/// end in their format, "720p_4x3_jpg", and so do videos that are not mp4: "720p_4x3_5s_webm";
/// samples without media end in "nomedia".
/// Lower-case ASCII, no dot: "2_5s" begins at 2.5.
std::string bin_name(const BinEdges& edges, const BinFacts& facts);

}  // namespace vfm::curate
