// The change in a video at a moment, as a picture and as codes for finding copies.
//
// A change is the mean of the half second after a moment less the mean of the half second before.
// Content at rest cancels out: a logo, bars, the view of a fixed camera. A video without changes
// cannot be found.
//
// A code has the signs of the 24 lowest frequencies of the change in a window (a 5 x 5 cosine
// transform without the mean). In the index the window is the inner 70 % of a video. A video that
// is looked up may be a crop, so 81 crops are tried: 0, 7.5 or 15 % off at each side. Each crop
// gives the place of the window in the cropped video. Both signs of the smallest coefficients are
// tried. Perceptual hashes of pictures use such signs: Zauner, "Implementation and benchmarking of
// perceptual image hash functions", 2010, 3.1.
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

/// Cells in grey levels (of 255), less their mean.
using ChangePicture = std::array<float, kSignatureCells>;

/// Moment `k` is the beginning of picture k. The moment has a change if at least two pictures lie
/// before it and two after: k in [2, count - 1).
inline constexpr std::size_t kFirstMoment = 2;
inline std::size_t moments_end(std::size_t pictures) {
  return pictures > 3 ? pictures - 1 : kFirstMoment;
}
/// Computes the change at moment k.
void change_at(std::span<const SignaturePicture> pictures, std::size_t k, ChangePicture& change);
/// Returns the root mean square of the cells.
float change_strength(const ChangePicture& change);
/// Returns the strength of noise all over the picture: the deviation of normal noise with the same
/// median of absolute values. The result is near 0 for motion in a few cells.
float change_noise(const ChangePicture& change);
/// Returns how much neighbouring cells differ: about 0 if the picture changes as one slope, 1 if
/// neighbouring cells are unrelated.
float change_detail(const ChangePicture& change);

inline constexpr int kCodeBits = 24;
/// A change weaker than this strength is taken for noise, and has no code.
inline constexpr float kLeastChange = 0.3F;

/// The edges of a picture within a larger picture, as fractions of the larger picture's sides.
struct CropWindow {
  double left = 0, right = 1, top = 0, bottom = 1;
};

/// Returns the code for the index, or no value if hardly anything changes.
std::optional<std::uint32_t> index_code(const ChangePicture& change);

inline constexpr std::size_t kCropWays = 81;
/// Returns the crop with number `way`: the edges of the looked-up video within the indexed video.
CropWindow crop_of_way(std::size_t way);
inline constexpr std::size_t kTriedSigns = 16;
/// For each crop, codes that the indexed video may have, the likeliest first.
using LookupCodes = std::array<std::array<std::uint32_t, kTriedSigns>, kCropWays>;
/// Writes `codes`. Returns false if hardly anything changes.
bool lookup_codes(const ChangePicture& change, LookupCodes& codes);

}  // namespace vfm::curate
