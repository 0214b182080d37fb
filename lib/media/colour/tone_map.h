// Converts HDR pictures (PQ, HLG), and SDR in BT.2020's colours, for an SDR screen.
//
// Samples are converted to light by the source's standard (SMPTE ST 2084, or ARIB STD-B67 on a
// screen of 1000 cd/m2). The largest of R, G and B is compressed by the EETF of ITU-R BT.2390
// section 5.4.1 from the source's peak to 203 cd/m2 (the white of BT.2408). The two smaller values
// are scaled in proportion, so hues stay. Then BT.2020's primaries become BT.709's, values out of
// range are clipped, and the inverse of gamma 2.4 is applied. SDR already has that gamma, and is
// not compressed. Results are computed once, for a grid of 65 x 65 x 65 points of (Y, U, V).
// Interpolation uses whole numbers, so all machines give the same bits.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "media/frame.h"

namespace vfm::media {

/// The grid for one kind of picture. Thread-safety: constant after construction.
class ToneMap {
 public:
  /// The parameters of a map. `peak`: the highest luminance of a PQ source, in cd/m2.
  struct Kind {
    int transfer = 16, primaries = 9, matrix = 9;
    bool full_range = false;
    int peak = 1000;
    friend bool operator==(const Kind&, const Kind&) = default;
  };
  explicit ToneMap(const Kind& kind);
  /// Returns the parameters for a picture. The peak is MaxCLL or, if unknown, the mastering
  /// screen's; without metadata it is 1000.
  static Kind kind_of(const Frame& picture);

  const Kind& kind() const { return kind_; }
  /// `from` is yuv420p10; the result is yuv420 in BT.709, limited range.
  Frame map(const Frame& from) const;

 private:
  struct Point {
    std::uint16_t y, u, v;  // in 1/64
  };
  Point at(int y, int u, int v) const;
  Kind kind_;
  std::vector<Point> grid_;
};

/// Maps the frames of a video; keeps the last ToneMap. Thread-safety: one thread at a time.
class ToneMapper {
 public:
  /// Returns the frame in SDR, or `frame` itself if it is not yuv420p10.
  Frame map(const Frame& frame);

 private:
  std::shared_ptr<const ToneMap> map_;  // null until a picture needs one
};

}  // namespace vfm::media
