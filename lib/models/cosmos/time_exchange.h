// The exchanges of ranks that decode one video together, each computing some of its frames with the
// bits that one rank alone gives. They exchange the frames that a convolution in time looks back
// at, and the keys and values of all earlier frames.
//
// Chunks of the video are dealt in turn, chunk i to rank i mod the size of the line, and processed
// in rounds of one chunk per rank. The frames of a chunk follow those of the chunk before, which
// the rank to the left has. For rank 0 the last rank had it in the round before. So memory is that
// of a chunk, and of the keys and values, as for one rank. Errors, thread-safety: those of the
// group (dist/group.h). All ranks with a chunk run the same layers. Shape letters: T frames, C
// channels.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "models/cosmos/rank_line.h"
#include "ops/attention/video_attention.h"
#include "tensor/tensor.h"

namespace vfm::models {

class TimeExchange {
 public:
  /// `chunks` is the number of chunks of the video.
  TimeExchange(const RankLine& line, std::int64_t chunks) : line_(line), chunks_(chunks) {}

  /// Goes to the next round; the first call goes to the first round. Returns false if there is
  /// none.
  bool next_round();
  /// The first chunk of the round, and the number of ranks that have a chunk.
  std::int64_t begin() const { return begin_; }
  int parts() const;
  /// takes_part(): this rank has a chunk in the round. first(): its chunk is the first of the
  /// video.
  bool takes_part() const { return line_.place() < parts(); }
  bool first() const { return begin_ + line_.place() == 0; }

  /// x [lead + T, ...] has room for `lead` earlier frames of a layer before the frames of the
  /// chunk. Receives these from the left, and sends the last `lead` frames of x to the right. Rank
  /// 0 received its earlier frames in the round before, as `history`; here it receives those for
  /// the next round into `history`.
  void pass_on(const Tensor& x, std::int64_t lead, Tensor& history);
  /// The keys and values [T, ...] of this rank's chunk after those of all earlier chunks. `past`
  /// has those of earlier rounds; the call adds those of this round.
  ops::TimeKeys with_past(ops::TimeKeys& past, const Tensor& keys, const Tensor& values);

 private:
  bool more() const { return begin_ + line_.size() < chunks_; }
  /// Sends what each rank with a chunk gives to the ranks after it; if there is another round, to
  /// all.
  std::vector<Tensor> share(const Tensor& own, const std::vector<std::int64_t>& frames);

  const RankLine line_;
  const std::int64_t chunks_;
  std::int64_t begin_ = -1;
};

}  // namespace vfm::models
