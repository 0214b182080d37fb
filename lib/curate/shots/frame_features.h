// Features of one frame for shot detection, and differences of two frames.
//
// Pure functions on small pictures. Thread-safety: none needed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "curate/small_picture.h"

namespace vfm::curate {

inline constexpr int kLumaBins = 64;
inline constexpr int kChromaBins = 16;  ///< for u and for v; joint bins: 16 x 16

/// A frame's small picture and the features derived from it.
struct FrameFeatures {
  SmallPicture picture;
  /// HSV saturation, 0..255, on the chroma grid.
  alignas(32) std::array<std::uint8_t, kChromaCells> saturation;
  /// Counts, smoothed so that a slight change of light does not move a flat area to another bin.
  alignas(32) std::array<float, kLumaBins> luma_histogram;
  alignas(32) std::array<float, kChromaBins * kChromaBins> chroma_histogram;
  LumaStatistics luma;
  ActiveArea area;  ///< the whole picture if `black`
  bool black = false;
  float deviation = 0;        ///< colour_deviation of the area
  float whole_deviation = 0;  ///< colour_deviation of the whole picture
};

void compute_features(const media::Frame& frame, FrameFeatures& out);
/// Computes all other members of `out` from out.picture.
void complete_features(FrameFeatures& out);

/// Returns 1 - the Pearson correlation of the histograms, the larger result of luma and chroma: 0
/// means the same, 1 unrelated.
float histogram_difference(const FrameFeatures& a, const FrameFeatures& b);
/// Differences up to kSameColours mean one scene; differences above kOtherColours mean two scenes.
inline constexpr float kSameColours = 0.05f, kOtherColours = 0.25f;

/// Returns 1 - the normalised covariance of the cells of both pictures (luma and chroma) within
/// their joint area. 0 means the same structure, at any brightness and contrast, 1 unrelated, and
/// up to 2 inverted. Structure with a standard deviation below `noise` (grey levels) is ignored.
float structure_difference(const FrameFeatures& a, const FrameFeatures& b, float noise = 2);

/// Returns the mean absolute difference of all cells, luma plus chroma, in grey levels.
float plain_difference(const SmallPicture& a, const SmallPicture& b);
/// Returns plain_difference() for means of 4 x 4 cells, which reduce grain to a quarter.
float coarse_difference(const SmallPicture& a, const SmallPicture& b);

}  // namespace vfm::curate
