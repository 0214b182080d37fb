// What ranks exchange that decode one video together, so that each computes some of its frames to
// the bits that one rank alone has: the frames that a convolution in time looks back at, and the
// keys and values of all earlier frames.
//
// The chunks of the video are dealt in turn, chunk i to rank i mod size of a line, and worked on in
// rounds of one chunk a rank. A layer's frames of a chunk follow those of the chunk before: of the
// rank to the left, or for rank 0 of the last rank in the round before. So memory is that of a
// chunk, and of the keys and values, as for one rank. Errors, thread-safety: those of the group
// (dist/group.h). All ranks with a chunk run the same layers. Shape letters: T frames, C channels.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "models/cosmos/rank_line.h"
#include "ops/attention/time_attention.h"
#include "tensor/tensor.h"

namespace vfm::models {

class TimeExchange {
 public:
  /// Of a video of so many chunks.
  TimeExchange(const RankLine& line, std::int64_t chunks) : line_(line), chunks_(chunks) {}

  /// To the next round, the first at first. False: there is none.
  bool next_round();
  /// The first chunk of the round, and how many ranks have one.
  std::int64_t begin() const { return begin_; }
  int parts() const;
  /// Whether this rank has a chunk in the round, which is the first of the video.
  bool takes_part() const { return line_.place() < parts(); }
  bool first() const { return begin_ + line_.place() == 0; }

  /// x [lead + T, ...], a layer's frames behind those that they follow, which come from the left;
  /// the last `lead` of it go to the right. Rank 0 has had its own in the round before: `history`,
  /// which becomes that for the next round.
  void pass_on(const Tensor& x, std::int64_t lead, Tensor& history);
  /// Keys and values [T, ...] of this rank's chunk behind those of all chunks before it. `past` has
  /// those of earlier rounds, and then of this one too.
  ops::TimeKeys with_past(ops::TimeKeys& past, const Tensor& keys, const Tensor& values);

 private:
  bool more() const { return begin_ + line_.size() < chunks_; }
  /// What each rank with a chunk gives, to the ranks that come after it; and if there is another
  /// round, to all.
  std::vector<Tensor> share(const Tensor& own, const std::vector<std::int64_t>& frames);

  const RankLine line_;
  const std::int64_t chunks_;
  std::int64_t begin_ = -1;
};

}  // namespace vfm::models
