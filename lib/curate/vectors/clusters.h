// Clusters vectors by direction with spherical k-means (Dhillon and Modha, "Concept decompositions
// for large sparse text data using clustering", 2001). The first centres are chosen by k-means++
// (Arthur and Vassilvitskii, 2007) with the distance 1 - cosine.
//
// All vectors must fit into memory. For more vectors, find the clusters of a sample, then call
// nearest() for each vector. The same rows give the same centres on every processor and with any
// number of slots.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "share/slots.h"

namespace vfm::curate {

class Clusters {
 public:
  /// Finds `wanted` clusters (at least 1) of `rows`. The rows are vectors of `dim` numbers and
  /// length 1, in random order. If fewer rows are distinct, finds fewer clusters. Throws Stopped.
  static Clusters find(const std::vector<float>& rows, std::size_t dim, std::size_t wanted,
                       std::uint64_t seed, share::Slots& slots);

  struct Nearest {
    std::uint32_t cluster = 0;
    float cosine = 0;
  };
  /// Returns the nearest cluster of each row, or the first of equally near clusters.
  std::vector<Nearest> nearest(const std::vector<float>& rows, share::Slots& slots) const;
  std::size_t count() const { return count_; }

 private:
  Clusters(std::size_t dim, std::size_t count);
  void set(std::size_t cluster, const double* sum);
  void move(const std::vector<float>& rows, const std::vector<Nearest>& nearest);

  std::size_t dim_, count_;
  std::vector<float> tiles_;  // centres, sixteen a tile, in the order tile, dimension, centre
};

}  // namespace vfm::curate
