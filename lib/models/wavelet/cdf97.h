// The CDF 9/7 wavelet by lifting, whole-sample symmetric at the borders: the irreversible transform
// of JPEG 2000 (ITU-T T.800, annex F), but with gain 1 for both filters where they pass most (the
// low pass at frequency 0, the high pass at the highest), so that all bands live on the scale of
// pixels.
// Thread-safety: pure functions; a PlaneTransform is one thread's.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace vfm::models {

/// Transforms the columns of an even number of `rows` rows: `out` gets the low half, then the high
/// half, `rows` / 2 rows each. And the inverse, which works in `in`. `in` and `out` do not overlap.
void cdf97_analyse(const float* in, float* out, int rows, int columns);
void cdf97_synthesise(float* in, float* out, int rows, int columns);

/// The two-dimensional transform of planes of one size, in place. Mallat's layout: the low band of
/// level l is the top left (height >> l) x (width >> l) of the plane; right of it stands the detail
/// in x, below it the detail in y. The sizes are multiples of 2^levels. It works in `room`, the
/// caller's, as large as kRoom planes.
class PlaneTransform {
 public:
  static constexpr int kRoom = 2;
  PlaneTransform(int height, int width, int levels, float* room);
  void analyse(float* plane);
  void synthesise(float* plane);

 private:
  int height_, width_, levels_;
  float *a_, *b_;
};

}  // namespace vfm::models
