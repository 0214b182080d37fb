// Computes the change in a video at a moment, and codes of the change for finding copies.
//
// A change is the mean picture of the half second after a moment, minus the mean picture of the
// half second before the moment. Content that does not move, such as a logo, has no effect. A video
// without changes cannot be found.
//
// A code has the 24 signs of the lowest 5 x 5 frequencies, except the mean. The frequencies come
// from a cosine transform of the change within a window (Zauner, "Implementation and benchmarking
// of perceptual image hash functions", 2010, 3.1). For the index, the window is the inner 70 % of
// the picture. A video that is looked up may be a crop of the indexed video. 81 crops are tried,
// which lack 0, 7.5 or 15 % at each side.
// Pure functions. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "curate/copies/video_signature.h"

namespace vfm::curate {

/// A change. The cells are differences of grey levels (0 to 255), minus the mean of all cells.
using ChangePicture = std::array<float, kSignatureCells>;

/// The first moment that has a change. Moment `k` is the beginning of picture k. A change needs at
/// least two pictures before the moment and two pictures after, so k lies in [2, count - 1).
inline constexpr std::size_t kFirstMoment = 2;
inline std::size_t moments_end(std::size_t pictures) {
  return pictures > 3 ? pictures - 1 : kFirstMoment;
}
/// Computes the change at moment k.
void change_at(std::span<const SignaturePicture> pictures, std::size_t k, ChangePicture& change);
/// Returns the root mean square of the cells.
float change_strength(const ChangePicture& change);
/// Returns the strength of noise, estimated from the median of the cells' absolute values. If only
/// a few cells change, the result is near 0.
float change_noise(const ChangePicture& change);
/// Returns how much neighbouring cells differ. The result is about 0 for a smooth change and 1 for
/// unrelated cells.
float change_detail(const ChangePicture& change);

inline constexpr int kCodeBits = 24;
/// The minimum strength of a change that has a code.
inline constexpr float kLeastChange = 0.3F;

/// The edges of a picture within a larger picture, as fractions of the larger picture's sides.
struct CropWindow {
  double left = 0, right = 1, top = 0, bottom = 1;
};

/// Returns the code for the index, or nullopt if hardly anything changes.
std::optional<std::uint32_t> index_code(const ChangePicture& change);

inline constexpr std::size_t kCropWays = 81;
/// Returns the crop with the number `way`. A crop is the part of the indexed video that the
/// looked-up video shows.
CropWindow crop_of_way(std::size_t way);
inline constexpr std::size_t kTriedSigns = 16;
/// For each crop, the codes that the indexed video may have. The most likely code is first.
using LookupCodes = std::array<std::array<std::uint32_t, kTriedSigns>, kCropWays>;
/// Writes the codes of a change to `codes`. Returns false if hardly anything changes.
bool lookup_codes(const ChangePicture& change, LookupCodes& codes);

}  // namespace vfm::curate
