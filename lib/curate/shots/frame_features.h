// Computes features of a frame for shot detection, and differences between two frames.
//
// Pure functions. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "curate/small_picture.h"

namespace vfm::curate {

inline constexpr int kLumaBins = 64;
inline constexpr int kChromaBins = 16;  ///< Number of bins of u, and of bins of v.

struct FrameFeatures {
  SmallPicture picture;
  /// The HSV saturation of each chroma cell, 0 to 255.
  alignas(32) std::array<std::uint8_t, kChromaCells> saturation;
  /// The smoothed number of cells in each bin of luma, and in each joint bin of u and v.
  alignas(32) std::array<float, kLumaBins> luma_histogram;
  alignas(32) std::array<float, kChromaBins * kChromaBins> chroma_histogram;
  LumaStatistics luma;
  ActiveArea area;  ///< Area without black bars, or the whole frame if the frame is black.
  bool black = false;
  float deviation = 0;        ///< colour_deviation() of `area`.
  float whole_deviation = 0;  ///< colour_deviation() of the whole picture.
};

void compute_features(const media::Frame& frame, FrameFeatures& out);
/// Computes all other members of `out` from out.picture.
void complete_features(FrameFeatures& out);

/// Returns the difference of the histograms of luma or of chroma, whichever is larger. A difference
/// is 1 minus the Pearson correlation: 0 for equal histograms, 1 for unrelated histograms.
float histogram_difference(const FrameFeatures& a, const FrameFeatures& b);
/// A histogram_difference() up to kSameColours means one scene. A difference above kOtherColours
/// means two scenes.
inline constexpr float kSameColours = 0.05f, kOtherColours = 0.25f;

/// Returns 1 minus the normalised covariance of the luma and chroma cells of two pictures, within
/// their joint area. Equal structure gives 0 at any brightness and contrast. Unrelated structure
/// gives 1, and inverted structure 2. Ignores structure with a standard deviation below `noise`
/// grey levels.
float structure_difference(const FrameFeatures& a, const FrameFeatures& b, float noise = 2);

/// Returns the mean absolute difference of the luma cells plus the mean absolute difference of the
/// chroma cells, in grey levels.
float plain_difference(const SmallPicture& a, const SmallPicture& b);
/// Returns plain_difference() of means of 4 x 4 cells. The means depend less on grain than single
/// cells.
float coarse_difference(const SmallPicture& a, const SmallPicture& b);

}  // namespace vfm::curate
