// The change in a video at a moment, as a picture and as codes for finding copies.
//
// A change is the mean of the half second after a moment less that of the half second before. Still
// content is not in it: a logo, bars, the view of a fixed camera. So other minutes of the same view
// have other changes, and a still video has none and cannot be found.
//
// A code has the signs of the 24 lowest frequencies (a cosine transform of 5 x 5 without the mean)
// of the change, in a window. For the video that is looked up, the window is where the other one's
// inner 70 % would lie if this video were a crop of it, for 81 crops: 0, 7.5 and 15 % at each side.
// The signs nearest to changing are tried both ways.
// (Signs of low frequencies: the idea of perceptual hashes of pictures, Zauner, "Implementation and
// benchmarking of perceptual image hash functions", 2010, 3.1; here of changes, not of pictures.)
// Pure. Thread-safety: none needed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "curate/copies/video_signature.h"

namespace vfm::curate {

/// Cells in levels of 255, less their mean.
using ChangePicture = std::array<float, kSignatureCells>;

/// A moment `k` is the beginning of picture k. It has a change if there are two pictures before and
/// after: from 2 up to, not with, count - 1.
inline constexpr std::size_t kFirstMoment = 2;
inline std::size_t moments_end(std::size_t pictures) {
  return pictures > 3 ? pictures - 1 : kFirstMoment;
}
/// The change at moment k.
void change_at(std::span<const SignaturePicture> pictures, std::size_t k, ChangePicture& change);
/// Root mean square.
float change_strength(const ChangePicture& change);
/// The deviation of normal noise with the same median of absolute cells: the strength of noise all
/// over the picture, but near 0 for motion in a few cells.
float change_noise(const ChangePicture& change);
/// How much neighbouring cells differ: about 0 where all of the picture rises and falls as one
/// slope, 1 where they are unrelated.
float change_detail(const ChangePicture& change);

inline constexpr int kCodeBits = 24;
/// Below this strength a change is taken for noise, and has no code.
inline constexpr float kLeastChange = 0.3F;

/// The edges of a picture within another picture, as fractions of the other's sides.
struct CropWindow {
  double left = 0, right = 1, top = 0, bottom = 1;
};

/// The code for the index, from the inner 70 %. Nothing if hardly anything changes.
std::optional<std::uint32_t> index_code(const ChangePicture& change);

inline constexpr std::size_t kCropWays = 81;
/// The place of this video in the other one that crop `way` supposes.
CropWindow crop_of_way(std::size_t way);
inline constexpr std::size_t kTriedSigns = 16;
/// For each crop the codes that the other video may have, the likeliest first.
using LookupCodes = std::array<std::array<std::uint32_t, kTriedSigns>, kCropWays>;
/// False where hardly anything changes.
bool lookup_codes(const ChangePicture& change, LookupCodes& codes);

}  // namespace vfm::curate
