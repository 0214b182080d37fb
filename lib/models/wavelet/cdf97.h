// The CDF 9/7 wavelet by lifting, whole-sample symmetric at the borders. It is the irreversible
// transform of JPEG 2000 (ITU-T T.800, annex F), but both filters have gain 1 where they pass most
// (the low pass at frequency 0, the high pass at the highest). So all bands have the scale of
// pixels.
// Thread-safety: pure functions; a PlaneTransform belongs to one thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace vfm::models {

/// Transforms the columns of an even number of `rows` rows: `out` gets the low half, then the high
/// half, `rows` / 2 rows each. synthesise is the inverse, and overwrites `in`. `in` and `out` must
/// not overlap.
void cdf97_analyse(const float* in, float* out, int rows, int columns);
void cdf97_synthesise(float* in, float* out, int rows, int columns);

/// The two-dimensional transform of planes of one size, in place, in Mallat's layout. The low band
/// of level l is the top left (height >> l) x (width >> l) of the plane. The detail in x is right
/// of it, the detail in y below it. The sizes must be multiples of 2^levels. `room` is the caller's
/// working memory, as large as kRoom planes.
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
