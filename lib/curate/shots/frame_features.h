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
inline constexpr int kChromaBins = 16;  ///< for u and for v: 16 x 16 joint bins

/// A frame's small picture and what is derived from it once.
struct FrameFeatures {
  SmallPicture picture;
  /// HSV's, 0..255, on the chroma grid.
  alignas(32) std::array<std::uint8_t, kChromaCells> saturation;
  /// Smoothed counts (so that a slight change of light does not move a flat area into a foreign
  /// bin).
  alignas(32) std::array<float, kLumaBins> luma_histogram;
  alignas(32) std::array<float, kChromaBins * kChromaBins> chroma_histogram;
  LumaStatistics luma;
  ActiveArea area;  ///< the whole picture if it is black (`black`)
  bool black = false;
  float deviation = 0;        ///< colour_deviation of the area
  float whole_deviation = 0;  ///< colour_deviation of the whole picture
};

void compute_features(const media::Frame& frame, FrameFeatures& out);
/// Computes all other fields from out.picture.
void complete_features(FrameFeatures& out);

/// 1 - Pearson correlation of the histograms, the larger of luma and chroma: 0 same, 1 unrelated.
float histogram_difference(const FrameFeatures& a, const FrameFeatures& b);
/// Up to kSameColours two pictures have the colours of one scene, above kOtherColours those of two.
inline constexpr float kSameColours = 0.05f, kOtherColours = 0.25f;

/// 1 - normalised covariance of the cells of both pictures (luma and chroma) within their joint
/// area: 0 the same structure whatever the brightness and contrast, 1 unrelated, up to 2 for
/// inverted. `noise` is a standard deviation (grey levels) below which structure does not count.
float structure_difference(const FrameFeatures& a, const FrameFeatures& b, float noise = 2);

/// Mean absolute difference of all cells, luma plus chroma, in grey levels.
float plain_difference(const SmallPicture& a, const SmallPicture& b);
/// The same for the means of 4 x 4 cells, in which grain weighs a quarter.
float coarse_difference(const SmallPicture& a, const SmallPicture& b);

}  // namespace vfm::curate
