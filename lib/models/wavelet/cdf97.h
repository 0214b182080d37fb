// The CDF 9/7 wavelet by lifting, whole-sample symmetric at the borders: the irreversible transform
// of JPEG 2000 (ITU-T T.800, annex F), but with gain 1 for both filters where they pass most (the
// low pass at frequency 0, the high pass at the highest), so that all bands live on the scale of
// pixels.
// Thread-safety: pure functions; a PlaneTransform is one thread's.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

namespace vfm::models {

/// Transforms the columns of an even number of `rows` rows: `out` gets the low half, then the high
/// half, `rows` / 2 rows each. And the inverse. `in` and `out` do not overlap.
void cdf97_analyse(const float* in, float* out, int rows, int columns);
void cdf97_synthesise(const float* in, float* out, int rows, int columns);

/// The two-dimensional transform of planes of one size, in place. Mallat's layout: the low band of
/// level l is the top left (height >> l) x (width >> l) of the plane; right of it stands the detail
/// in x, below it the detail in y. The sizes are multiples of 2^levels.
class PlaneTransform {
 public:
  PlaneTransform(int height, int width, int levels);
  void analyse(float* plane);
  void synthesise(float* plane);

 private:
  int height_, width_, levels_;
  std::vector<float> a_, b_;
};

}  // namespace vfm::models
