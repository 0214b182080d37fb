// Cuts clips at given places: at fixed strides, or at spans from a file.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "clip/cut/cutter.h"
#include "clip/lists/spans.h"
#include "curate/measures/clip_meter.h"

namespace vfm::clip {

class GivenCutter : public ClipCutter {
 public:
  using ClipCutter::ClipCutter;

 protected:
  void add_given(media::Frame&& frame);

 private:
  curate::MotionEstimator estimator_;
};

/// Cuts consecutive clips with the length ClipRecipe::stride.
class StrideCutter final : public GivenCutter {
 public:
  using GivenCutter::GivenCutter;
  void cut() override;
};

/// Cuts the source's spans. Overlapping spans are cut in different passes over the video. A span
/// that has no frames, or ends after the video's end, becomes an error in the summary.
class SpanCutter final : public GivenCutter {
 public:
  SpanCutter(const ClipSource& source, const ClipOptions& options, int threads, Crew& crew,
             Progress& progress, ClipOutput& output)
      : GivenCutter(source, options, threads, crew, progress, output), spans_(*source.spans) {}
  void cut() override;

 private:
  struct Pass {
    std::size_t at = 0, end = 0;
    bool found = false;
    double length = 0, here = 0;
    std::int64_t number = 0;
  };
  void plan();
  bool begin_pass();
  void cut_pieces(media::Frame&& frame);
  void end_pass();

  const std::vector<GivenSpan>& spans_;
  std::vector<SpanPiece> pieces_;
  Pass pass_;
};

}  // namespace vfm::clip
