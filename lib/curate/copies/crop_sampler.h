// Correlates two small pictures. The second picture may be a crop of the first picture.
// Pure. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>

#include "curate/copies/change_codes.h"
#include "curate/copies/video_signature.h"

namespace vfm::curate {

/// The correlation of two ChangePictures, over the cells that lie in both of them.
struct Correlation {
  double value = 0;  ///< Correlation from -1 to 1, or 0 if a picture is flat.
  /// Standard deviations of the pictures in grey levels.
  double first_strength = 0, second_strength = 0;
};

class CropSampler {
 public:
  /// Returns a sampler for two pictures. `crop` has the edges of the second picture within the
  /// first picture. Returns nullopt if less than 0.4 of the second picture's area lies in the first
  /// picture, or if the widths or heights differ by a factor above 1.7.
  static std::optional<CropSampler> of(const CropWindow& crop);

  Correlation correlate(const ChangePicture& first, const ChangePicture& second) const;
  /// Returns the correlation of two pictures, 0 to 1. Ignores the tenth of the cells that differs
  /// most from a linear relation. `noise` is added to variances and covariance, so two flat
  /// pictures give 1.
  double correlate_pictures(const SignaturePicture& first, const SignaturePicture& second,
                            double noise) const;

 private:
  /// The place of a row or column of the second picture between two cells of the first picture.
  struct Tap {
    int cell = 0;    ///< Index of the first of the two cells.
    float part = 0;  ///< Weight of the second of the two cells.
  };
  struct Side {
    int begin = 0, end = 0;  ///< Range of the cells that lie in both pictures.
    std::array<Tap, kSignatureSide> taps;
  };
  static Side side_of(double low, double high);
  template <class Picture>
  void sample(const Picture& first, ChangePicture& out) const;

  Side across_, down_;
};

}  // namespace vfm::curate
