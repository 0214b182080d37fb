// Some ranks of a group in a row, whose neighbours send each other data: the ranks with the bands
// of rows of one chunk of a video, or the ranks with the chunks of one band.
//
// Errors, thread-safety: those of the group (dist/group.h), which must outlive the object.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "dist/group.h"
#include "tensor/tensor.h"

namespace vfm::models {

class RankLine {
 public:
  /// All ranks of the group.
  explicit RankLine(dist::Group& group) : RankLine(group, 0, 1, group.size()) {}
  /// The ranks `first`, `first` + `apart`, ... of the group. This rank must be one of them.
  RankLine(dist::Group& group, int first, int apart, int size);

  int place() const { return place_; }
  int size() const { return size_; }

  /// One exchange between ranks of the line, named by their places: sends `out` to `to` and
  /// receives `in` from `from`. A rank may only send, only receive, or do neither.
  dist::Transfer step(bool sends, int to, const Tensor& out, bool receives, int from,
                      const Tensor& in) const;

 private:
  int rank_at(int place) const { return first_ + place * apart_; }

  dist::Group* group_;
  int first_, apart_, size_, place_;
};

}  // namespace vfm::models
