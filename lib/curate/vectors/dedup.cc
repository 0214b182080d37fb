// SPDX-License-Identifier: Apache-2.0
//
// A unit vector a has a head a1, its first kHead dimensions, and a rest a2. Then a.b = a1.b1 +
// a2.b2 <= a1.b1 + |a2||b2|. The heads of kept items are stored transposed, in tiles of kTile
// items, so one row is multiplied by kTile heads at a time.
#include "curate/vectors/dedup.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <optional>

#include "base/stop.h"
#include "share/ordered.h"

namespace vfm::curate {
namespace {

constexpr std::size_t kHead = 64;     // dimensions compared for every pair, and in each next step
constexpr std::size_t kTile = 16;     // kept items in a tile
constexpr std::size_t kRows = 4;      // items compared with a tile at once
constexpr std::size_t kBlock = 2048;  // items compared at once with all items kept before
constexpr std::size_t kChunk = 64;    // items of a block that one thread takes
// The product of unit vectors with some thousand dimensions is exact to 1e-5 in floats. Pairs above
// the threshold less kSlack are decided in double.
constexpr float kSlack = 1e-4f;

using Lanes = float __attribute__((vector_size(kTile * sizeof(float))));

/// out[r][j] = sum over d of rows[r][d] * tile[d][j]; tile is kHead x kTile.
template <class = void>
[[gnu::always_inline]] inline void head_products_body(const float* const* rows, const float* tile,
                                                      float* out) {
  Lanes sum[kRows] = {};
  for (std::size_t d = 0; d < kHead; ++d) {
    Lanes lanes;
    std::memcpy(&lanes, tile + d * kTile, sizeof lanes);  // the tile need not be aligned
    for (std::size_t r = 0; r < kRows; ++r)
      sum[r] += rows[r][d] * lanes;
  }
  std::memcpy(out, sum, sizeof sum);
}
void head_products_plain(const float* const* rows, const float* tile, float* out) {
  head_products_body(rows, tile, out);
}
#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) void head_products_avx2(const float* const* rows,
                                                            const float* tile, float* out) {
  head_products_body(rows, tile, out);
}
__attribute__((target("avx512f"))) void head_products_avx512(const float* const* rows,
                                                             const float* tile, float* out) {
  head_products_body(rows, tile, out);
}
#endif

using HeadProducts = void (*)(const float* const*, const float*, float*);

HeadProducts choose_head_products() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return head_products_avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return head_products_avx2;
#endif
  return head_products_plain;
}

/// The embeddings as unit vectors. Dimensions are sorted by falling variance and padded with zeros
/// to a multiple of kHead. `rests` has the length of a vector's rest after each kHead dimensions.
struct Vectors {
  Vectors(std::vector<float> embeddings, std::size_t dim);

  const float* row(std::size_t i) const { return values.data() + i * width; }
  float rest(std::size_t i, std::size_t step) const { return rests[i * steps + step]; }
  double cosine(std::size_t a, std::size_t b) const;
  /// Returns the cosine of a pair if at least `threshold`. `head` is the product of the heads.
  std::optional<double> decide(std::size_t a, std::size_t b, float head, double threshold) const;

  std::size_t count, width, steps;
  std::vector<float> values, rests;
  std::vector<bool> usable;
  std::vector<std::size_t> place;  // of each dimension in a row
};

Vectors::Vectors(std::vector<float> embeddings, std::size_t dim)
    : count(embeddings.size() / dim),
      width(near_width(dim)),
      steps(width / kHead),
      values(std::move(embeddings)),
      rests(count * steps),
      usable(count),
      place(dim) {
  std::vector<double> sum(dim), squares(dim);
  for (std::size_t i = 0; i < count; ++i) {
    float* in = values.data() + i * dim;
    usable[i] = to_unit_row({in, dim});
    for (std::size_t d = 0; d < dim; ++d) {
      sum[d] += in[d];
      squares[d] += double{in[d]} * in[d];
    }
  }
  std::vector<double> variance(dim);
  for (std::size_t d = 0; d < dim; ++d)
    variance[d] =
        squares[d] - sum[d] * sum[d] / static_cast<double>(std::max<std::size_t>(1, count));
  std::vector<std::size_t> order(dim);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return variance[a] > variance[b]; });
  for (std::size_t d = 0; d < dim; ++d)
    place[order[d]] = d;
  values.resize(count * width);
  std::vector<float> old(dim);
  for (std::size_t i = count; i-- > 0;) {  // from the last, because rows grow in place
    std::copy_n(&values[i * dim], dim, old.begin());
    float* out = &values[i * width];
    for (std::size_t d = 0; d < dim; ++d)
      out[d] = old[order[d]];
    std::fill(out + dim, out + width, 0.0f);
    double rest = 0;
    for (std::size_t step = steps; step-- > 0;) {
      rests[i * steps + step] = static_cast<float>(std::sqrt(rest));
      for (std::size_t d = 0; d < kHead; ++d)
        rest += std::pow(double{row(i)[step * kHead + d]}, 2);
    }
  }
}

/// Uses the original order of dimensions, so that the other rows have no effect.
double Vectors::cosine(std::size_t a, std::size_t b) const {
  std::vector<float> x(place.size()), y(place.size());
  for (std::size_t d = 0; d < place.size(); ++d)
    x[d] = row(a)[place[d]], y[d] = row(b)[place[d]];
  return near_cosine(x, y);
}

std::optional<double> Vectors::decide(std::size_t a, std::size_t b, float head,
                                      double threshold) const {
  const float least = static_cast<float>(threshold) - kSlack;
  float dot = head;
  for (std::size_t step = 0;; ++step) {
    if (dot + rest(a, step) * rest(b, step) < least) return std::nullopt;
    if (step + 1 == steps) break;
    const float *x = row(a) + (step + 1) * kHead, *y = row(b) + (step + 1) * kHead;
    float sums[8] = {};
    for (std::size_t d = 0; d < kHead; d += 8)
      for (std::size_t k = 0; k < 8; ++k)
        sums[k] += x[d + k] * y[d + k];
    for (const float part : sums)
      dot += part;
  }
  const double exact = cosine(a, b);
  if (exact < threshold) return std::nullopt;
  return exact;
}

class Kept {
 public:
  /// Reserves memory for all items, because a growing vector takes twice its memory for a while.
  explicit Kept(const Vectors& vectors) : vectors_(vectors) {
    items_.reserve(vectors.count);
    heads_.reserve((vectors.count + kTile - 1) / kTile * kHead * kTile);
    rests_.reserve(vectors.count);
  }

  std::size_t size() const { return items_.size(); }

  void add(std::size_t item) {
    const std::size_t lane = items_.size() % kTile;
    if (lane == 0) heads_.resize(heads_.size() + kHead * kTile);
    float* tile = heads_.data() + items_.size() / kTile * kHead * kTile;
    for (std::size_t d = 0; d < kHead; ++d)
      tile[d * kTile + lane] = vectors_.row(item)[d];
    items_.push_back(item);
    rests_.push_back(vectors_.rest(item, 0));
  }

  /// Finds, for each of `items` (at most kRows), the first near item kept at number `from` or
  /// later.
  void find(const std::size_t* items, std::size_t n, std::size_t from, double threshold,
            std::optional<NearDuplicate>* found) const;

 private:
  const Vectors& vectors_;
  HeadProducts head_products_ = choose_head_products();
  std::vector<std::size_t> items_;
  std::vector<float> heads_;
  std::vector<float> rests_;
};

void Kept::find(const std::size_t* items, std::size_t n, std::size_t from, double threshold,
                std::optional<NearDuplicate>* found) const {
  const float least = static_cast<float>(threshold) - kSlack;
  const float* rows[kRows];
  float rest[kRows];
  for (std::size_t r = 0; r < kRows; ++r) {
    rows[r] = vectors_.row(items[std::min(r, n - 1)]);
    rest[r] = vectors_.rest(items[std::min(r, n - 1)], 0);
  }
  float product[kRows][kTile];
  for (std::size_t tile = from / kTile; tile * kTile < items_.size(); ++tile) {
    head_products_(rows, heads_.data() + tile * kHead * kTile, product[0]);
    const std::size_t first = std::max(from, tile * kTile);
    const std::size_t last = std::min(items_.size(), (tile + 1) * kTile);
    for (std::size_t r = 0; r < n; ++r)
      for (std::size_t k = first; k < last && !found[r]; ++k) {
        const float head = product[r][k - tile * kTile];
        if (head + rest[r] * rests_[k] < least) continue;
        if (const auto cosine = vectors_.decide(items[r], items_[k], head, threshold))
          found[r] = {items[r], items_[k], *cosine};
      }
    if (std::all_of(found, found + n, [](const auto& f) { return f.has_value(); })) return;
  }
}

}  // namespace

std::size_t near_width(std::size_t dim) {
  return (dim + kHead - 1) / kHead * kHead;
}

bool to_unit_row(std::span<float> row) {
  double length = 0;
  for (const float value : row)
    length += double{value} * value;
  const bool usable = std::isfinite(length) && length > 0;
  const double scale = usable ? 1 / std::sqrt(length) : 0;
  for (float& value : row)
    value = usable ? static_cast<float>(value * scale) : 0;
  return usable;
}

double near_cosine(std::span<const float> a, std::span<const float> b) {
  double dot = 0, aa = 0, bb = 0;
  for (std::size_t d = 0; d < a.size(); ++d) {
    dot += double{a[d]} * b[d];
    aa += double{a[d]} * a[d];
    bb += double{b[d]} * b[d];
  }
  return std::round(dot / std::sqrt(aa * bb) * 1e9) / 1e9;
}

std::vector<NearDuplicate> find_near_duplicates(std::vector<float> embeddings, std::size_t dim,
                                                double threshold, share::Slots& slots) {
  if (dim == 0 || embeddings.empty()) return {};
  const Vectors vectors(std::move(embeddings), dim);
  Kept kept(vectors);
  std::vector<NearDuplicate> duplicates;
  std::vector<std::optional<NearDuplicate>> found(kBlock);
  for (std::size_t begin = 0; begin < vectors.count; begin += kBlock) {
    check_stop();
    std::vector<std::size_t> items;
    for (std::size_t i = begin; i < std::min(begin + kBlock, vectors.count); ++i)
      if (vectors.usable[i]) items.push_back(i);
    std::fill(found.begin(), found.end(), std::nullopt);
    // Compare with items kept before this block, in parallel.
    const std::size_t before = kept.size();
    std::size_t next = 0;
    share::for_each_ordered<std::size_t, bool>(
        slots,
        [&]() -> std::optional<std::size_t> {
          if (before == 0 || next >= items.size()) return std::nullopt;
          return std::exchange(next, next + kChunk);
        },
        [&](std::size_t& chunk) {
          for (std::size_t i = chunk; i < std::min(chunk + kChunk, items.size()); i += kRows)
            kept.find(&items[i], std::min(kRows, items.size() - i), 0, threshold, &found[i]);
          return true;
        },
        [](bool&) {});
    // Compare within the block in order, because only kept items have duplicates.
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (!found[i]) kept.find(&items[i], 1, before, threshold, &found[i]);
      if (found[i])
        duplicates.push_back(*found[i]);
      else
        kept.add(items[i]);
    }
  }
  return duplicates;
}

}  // namespace vfm::curate
