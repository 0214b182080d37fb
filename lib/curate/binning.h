// Puts samples into bins by resolution, aspect ratio and duration, because samples of a bin train
// together.
//
// For each of the three values, edges split the range into half-open intervals. Unknown values have
// a separate interval ("unsized", "untimed"). Every sample therefore has exactly one bin.
// Pure functions. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace vfm::curate {

struct BinEdges {
  std::vector<double> resolution{256, 480, 720, 1080, 2160};  ///< Shorter side in pixels.
  std::vector<double> aspect{0.65, 0.88, 1.16, 1.55};         ///< Width divided by height.
  std::vector<double> seconds{2, 5, 10, 30};
};

/// Parses positive, rising numbers, such as "256,480,720". "none" gives an empty list, which means
/// a single interval. For other texts, throws Error{usage} with `option` in the message.
std::vector<double> parse_edges(std::string_view text, std::string_view option);

struct BinFacts {
  double width = 0, height = 0;  ///< Size in pixels, or 0 if unknown.
  double seconds = 0;            ///< Duration, or 0 if unknown.
  bool image = false;
  std::string extension;  ///< Extension of the media file, such as "mp4", or empty without media.
};

/// Returns the name of the bin, which is also the name of its folder. "480p_16x9_5s" means [480,
/// 720) pixels, an aspect interval that contains 16:9, and [5, 10) seconds. "under256p_1x1_under2s"
/// lies below the first edges of resolution and seconds. Names for images, and for videos other
/// than mp4, end in the format ("720p_4x3_jpg", "720p_4x3_5s_webm"). Names for samples without
/// media end in "nomedia". Names are lower-case ASCII, with '_' for a decimal point: "2_5s" begins
/// at 2.5 seconds.
std::string bin_name(const BinEdges& edges, const BinFacts& facts);

}  // namespace vfm::curate
