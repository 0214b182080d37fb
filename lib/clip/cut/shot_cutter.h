// Cuts clips of one shot, or of several stitched shots that look alike where they meet. A frame
// waits for about a hundred later frames (curate::kShotLag) until its shot is certain.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "clip/cut/cutter.h"
#include "clip/cut/late_frames.h"
#include "clip/cut/recent_times.h"
#include "clip/cut/shot_finder.h"
#include "clip/cut/sound_across.h"
#include "curate/shots/shot_detector.h"

namespace vfm::clip {

class ShotCutter final : public ClipCutter {
 public:
  ShotCutter(const ClipSource& source, const ClipOptions& options, int threads, Crew& crew,
             Progress& progress, ClipOutput& output);
  void cut() override;

 private:
  void spare(media::Frame& frame);
  bool leaves_reading() const;
  void count_waiting(const media::Frame& frame, int sign);
  void take_changes();
  void place_settled();
  void place(const Seen& seen);
  std::optional<Join> stitches(const curate::ShotChange& change, std::int64_t end);
  double likeness_of(const Seen& before, const Seen& after);
  double model_likeness(const Seen& before, const Seen& after);
  const Seen* seen_at(std::int64_t index) const;
  void fetch_until(std::int64_t index);
  void open_gap(const ShotFinder::OpenChange& change, const media::Frame& frame);
  void change_shot(const Boundary& boundary, std::int64_t begin, const media::Frame& frame);
  void end_gap(std::int64_t pts);

  ShotFinder finder_;
  RecentTimes times_;
  std::deque<Seen> queue_;
  LateFrames late_;
  SoundAcross sound_;
  std::deque<curate::ShotChange> changes_;
  std::size_t change_ = 0;                  // index in cuts_ of the next change between shots
  std::int64_t shot_ = 0, shot_begin_ = 0;  // number and pts of the last shot's first frame
  std::int64_t gap_end_ = 0;                // frames before this number belong to no shot
  std::optional<std::int64_t> gap_begin_;   // pts of the open gap
  std::string gap_type_;
  // The first frame of an open gap after a clip that is too short and still open.
  std::optional<media::Frame> after_short_;
};

}  // namespace vfm::clip
