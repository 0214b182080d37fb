// Converts HDR pictures (PQ, HLG), and SDR pictures in BT.2020's colours, to SDR in BT.709.
//
// PQ becomes light by SMPTE ST 2084, and HLG by ARIB STD-B67 for a screen of 1000 cd/m2. The EETF
// of ITU-R BT.2390 section 5.4.1 compresses the largest of R, G and B, so that the peak of the
// source becomes 203 cd/m2, the white of BT.2408. The other two values keep their ratio to the
// largest value. SDR is not compressed. The result has gamma 2.4. Results have the same bits on all
// machines.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "media/frame.h"

namespace vfm::media {

/// A conversion for one kind of picture. Thread-safety: constant after construction.
class ToneMap {
 public:
  /// The parameters of a conversion. `peak` is the highest luminance of a PQ source in cd/m2.
  struct Kind {
    int transfer = 16, primaries = 9, matrix = 9;
    bool full_range = false;
    int peak = 1000;
    friend bool operator==(const Kind&, const Kind&) = default;
  };
  explicit ToneMap(const Kind& kind);
  /// Returns the parameters for a picture. The peak is MaxCLL or, if MaxCLL is unknown, the peak of
  /// the mastering screen. Without metadata, the peak is 1000.
  static Kind kind_of(const Frame& picture);

  const Kind& kind() const { return kind_; }
  /// Converts a yuv420p10 picture to yuv420 in BT.709 with limited range.
  Frame map(const Frame& from) const;

 private:
  struct Point {
    std::uint16_t y, u, v;  // Samples in units of 1/64.
  };
  Point at(int y, int u, int v) const;
  Kind kind_;
  std::vector<Point> grid_;
};

/// A converter for the frames of a video, which keeps the ToneMap of the previous frame.
/// Thread-safety: one thread at a time.
class ToneMapper {
 public:
  /// Returns the frame in SDR, or `frame` itself if its layout is not yuv420p10.
  Frame map(const Frame& frame);

 private:
  std::shared_ptr<const ToneMap> map_;
};

}  // namespace vfm::media
