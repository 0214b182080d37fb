// Correlation of two small pictures, one of which may be a crop of the other.
// Pure. Thread-safety: none needed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>

#include "curate/copies/change_codes.h"
#include "curate/copies/video_signature.h"

namespace vfm::curate {

/// The correlation of two changes, over the cells that both show.
struct Correlation {
  double value = 0;                                ///< -1 to 1; 0 if one is flat
  double first_strength = 0, second_strength = 0;  ///< standard deviations, in levels
};

class CropSampler {
 public:
  /// Returns the sampler for a second picture whose edges lie at `crop` of the first. Returns no
  /// value if the pictures share less than 0.4 of the second's area, or differ in size by more than
  /// 1.7 times.
  static std::optional<CropSampler> of(const CropWindow& crop);

  Correlation correlate(const ChangePicture& first, const ChangePicture& second) const;
  /// Returns the correlation of the pictures, 0 to 1, without the tenth of the cells that differs
  /// most from a linear relation. `noise` is added to variances and covariance, so two flat
  /// pictures give 1.
  double correlate_pictures(const SignaturePicture& first, const SignaturePicture& second,
                            double noise) const;

 private:
  /// The place of a row or column of the second picture in the first, between two cells.
  struct Tap {
    int cell = 0;    ///< the first of the two cells
    float part = 0;  ///< weight of the next cell
  };
  struct Side {
    int begin = 0, end = 0;  ///< cells that both show
    std::array<Tap, kSignatureSide> taps;
  };
  static Side side_of(double low, double high);
  template <class Picture>
  void sample(const Picture& first, ChangePicture& out) const;

  Side across_, down_;
};

}  // namespace vfm::curate
