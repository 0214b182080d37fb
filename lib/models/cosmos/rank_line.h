// Some ranks of a group in a row, among which neighbours send each other something: those of one
// chunk of a video that have its bands of rows, or those of one band that have its chunks.
//
// Errors, thread-safety: those of the group (dist/group.h), which must outlive it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "dist/group.h"
#include "tensor/tensor.h"

namespace vfm::models {

class RankLine {
 public:
  /// All of the group.
  explicit RankLine(dist::Group& group) : RankLine(group, 0, 1, group.size()) {}
  /// Its ranks `first`, `first` + `apart`, ..., of which this rank is one.
  RankLine(dist::Group& group, int first, int apart, int size);

  int place() const { return place_; }
  int size() const { return size_; }

  /// One step between ranks of the line, by their places: `out` goes to one, `in` comes from one. A
  /// rank may only send, only receive, or do neither.
  dist::Transfer step(bool sends, int to, const Tensor& out, bool receives, int from,
                      const Tensor& in) const;

 private:
  int rank_at(int place) const { return first_ + place * apart_; }

  dist::Group* group_;
  int first_, apart_, size_, place_;
};

}  // namespace vfm::models
