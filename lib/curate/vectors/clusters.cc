// SPDX-License-Identifier: Apache-2.0
#include "curate/vectors/clusters.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "base/philox.h"
#include "base/stop.h"
#include "curate/vectors/row_tiles.h"
#include "share/ordered.h"

namespace vfm::curate {
namespace {

constexpr std::size_t kPortion = 512;  // rows that one thread takes
constexpr int kRounds = 25;
constexpr double kAlike = 1e-6;  // rows with a smaller 1 - cosine count as equal

double row_product(const float* a, const float* b, std::size_t dim) {
  double sum = 0;
  for (std::size_t d = 0; d < dim; ++d)
    sum += double{a[d]} * b[d];
  return sum;
}

/// Draws the first centres from the rows. The chance of a row grows with the square of its distance
/// to the nearest chosen row. Returns fewer than `wanted` if all other rows equal chosen rows.
std::vector<std::size_t> first_centres(const std::vector<float>& rows, std::size_t dim,
                                       std::size_t wanted, std::uint64_t seed) {
  const std::size_t n = rows.size() / dim;
  const Random random(seed, Purpose::balance, 1);
  std::vector<double> far(n, 4.0);  // squared distance to the nearest chosen row
  std::vector<std::size_t> chosen = {0};
  while (chosen.size() < wanted) {
    check_stop();
    const float* last = &rows[chosen.back() * dim];
    double all = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const double distance = std::max(0.0, 1 - row_product(&rows[i * dim], last, dim));
      far[i] = std::min(far[i], distance < kAlike ? 0 : distance * distance);
      all += far[i];
    }
    if (all <= 0) break;
    double left = random.uniform(chosen.size()) * all;
    std::size_t next = n;
    for (std::size_t i = 0; i < n && (next == n || left > 0); ++i) {
      if (far[i] <= 0) continue;
      next = i;
      left -= far[i];
    }
    chosen.push_back(next);
  }
  return chosen;
}

}  // namespace

Clusters::Clusters(std::size_t dim, std::size_t count)
    : dim_(dim),
      count_(count),
      tiles_((count + kTileColumns - 1) / kTileColumns * kTileColumns * dim) {}

void Clusters::set(std::size_t cluster, const double* sum) {
  double length = 0;
  for (std::size_t d = 0; d < dim_; ++d)
    length += sum[d] * sum[d];
  const double scale = length > 0 ? 1 / std::sqrt(length) : 0;
  float* tile = &tiles_[cluster / kTileColumns * kTileColumns * dim_ + cluster % kTileColumns];
  for (std::size_t d = 0; d < dim_; ++d)
    tile[d * kTileColumns] = static_cast<float>(sum[d] * scale);
}

std::vector<Clusters::Nearest> Clusters::nearest(const std::vector<float>& rows,
                                                 share::Slots& slots) const {
  const std::size_t n = rows.size() / dim_;
  std::vector<Nearest> found(n);
  std::size_t next = 0;
  share::for_each_ordered<std::size_t, bool>(
      slots,
      [&]() -> std::optional<std::size_t> {
        if (next >= n) return std::nullopt;
        return std::exchange(next, next + kPortion);
      },
      [&](std::size_t& portion) {
        check_stop();
        float product[kTileRows][kTileColumns];
        const std::size_t end = std::min(portion + kPortion, n);
        for (std::size_t i = portion; i < end; i += kTileRows) {
          const float* four[kTileRows];
          for (std::size_t r = 0; r < kTileRows; ++r)
            four[r] = &rows[std::min(i + r, end - 1) * dim_];
          Nearest best[kTileRows];
          for (Nearest& one : best)
            one.cosine = -2;
          for (std::size_t c = 0; c < count_; c += kTileColumns) {
            tile_row_products(four, dim_, &tiles_[c * dim_], product);
            for (std::size_t r = 0; r < kTileRows; ++r)
              for (std::size_t j = 0; j < kTileColumns && c + j < count_; ++j)
                if (product[r][j] > best[r].cosine)
                  best[r] = {static_cast<std::uint32_t>(c + j), product[r][j]};
          }
          for (std::size_t r = 0; r < kTileRows && i + r < end; ++r)
            found[i + r] = best[r];
        }
        return true;
      },
      [](bool&) {});
  return found;
}

/// Moves each centre to the mean of its rows. A centre without rows moves to the row that is
/// farthest from its centre.
void Clusters::move(const std::vector<float>& rows, const std::vector<Nearest>& nearest) {
  std::vector<double> sums(count_ * dim_);
  std::vector<std::size_t> sizes(count_);
  for (std::size_t i = 0; i < nearest.size(); ++i) {
    double* sum = &sums[nearest[i].cluster * dim_];
    for (std::size_t d = 0; d < dim_; ++d)
      sum[d] += rows[i * dim_ + d];
    ++sizes[nearest[i].cluster];
  }
  const auto empty = static_cast<std::size_t>(std::count(sizes.begin(), sizes.end(), 0u));
  std::vector<std::size_t> farthest(nearest.size());
  std::iota(farthest.begin(), farthest.end(), std::size_t{0});
  std::partial_sort(farthest.begin(), farthest.begin() + static_cast<std::ptrdiff_t>(empty),
                    farthest.end(), [&](std::size_t a, std::size_t b) {
                      return std::pair(nearest[a].cosine, a) < std::pair(nearest[b].cosine, b);
                    });
  std::size_t taken = 0;
  for (std::size_t c = 0; c < count_; ++c) {
    if (sizes[c] == 0) {
      const float* row = &rows[farthest[taken++] * dim_];
      std::copy(row, row + dim_, &sums[c * dim_]);
    }
    set(c, &sums[c * dim_]);
  }
}

Clusters Clusters::find(const std::vector<float>& rows, std::size_t dim, std::size_t wanted,
                        std::uint64_t seed, share::Slots& slots) {
  const std::size_t n = rows.size() / dim;
  const std::vector<std::size_t> begin =
      first_centres(rows, dim, std::clamp<std::size_t>(wanted, 1, n), seed);
  Clusters clusters(dim, begin.size());
  for (std::size_t c = 0; c < begin.size(); ++c) {
    const float* row = &rows[begin[c] * dim];
    const std::vector<double> sum(row, row + dim);
    clusters.set(c, sum.data());
  }
  std::vector<Nearest> before;
  for (int round = 0; round < kRounds; ++round) {
    check_stop();
    std::vector<Nearest> now = clusters.nearest(rows, slots);
    const bool same =
        now.size() == before.size() &&
        std::equal(now.begin(), now.end(), before.begin(),
                   [](const Nearest& a, const Nearest& b) { return a.cluster == b.cluster; });
    if (same) break;
    clusters.move(rows, now);
    before = std::move(now);
  }
  return clusters;
}

}  // namespace vfm::curate
