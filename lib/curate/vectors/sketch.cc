// SPDX-License-Identifier: Apache-2.0
#include "curate/vectors/sketch.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>

#include "base/stop.h"
#include "curate/vectors/row_tiles.h"
#include "share/ordered.h"
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace vfm::curate {
namespace {

constexpr std::size_t kTrainedAtOnce = 512;  // rows that a thread takes
constexpr int kIterations = 4;
constexpr double kDependent = 1e-3;  // minimum remainder of an independent direction

using DirectionLanes = float __attribute__((vector_size(kTileColumns * sizeof(float))));

[[gnu::always_inline]] inline float float_product_body(const float* a, const float* b,
                                                       std::size_t dim) {
  constexpr std::size_t kSums = 2;
  DirectionLanes sums[kSums] = {};
  std::size_t d = 0;
  for (; d + kSums * kTileColumns <= dim; d += kSums * kTileColumns)
    for (std::size_t k = 0; k < kSums; ++k) {
      DirectionLanes x, y;
      std::memcpy(&x, a + d + k * kTileColumns, sizeof x);
      std::memcpy(&y, b + d + k * kTileColumns, sizeof y);
      sums[k] += x * y;
    }
  float sum = 0;
  for (; d < dim; ++d)
    sum += a[d] * b[d];
  for (const DirectionLanes& lanes : sums)
    for (std::size_t j = 0; j < kTileColumns; ++j)
      sum += lanes[j];
  return sum;
}
float float_product_plain(const float* a, const float* b, std::size_t dim) {
  return float_product_body(a, b, dim);
}

void tile_products_plain(const std::int16_t* const* four, std::size_t width,
                         const std::int16_t* tile, TileProducts& out) {
  std::memset(out, 0, sizeof out);
  for (std::size_t p = 0; p < width; p += 2)
    for (std::size_t r = 0; r < 4; ++r)
      for (std::size_t j = 0; j < kTileSide; ++j)
        out[r][j] += std::int32_t{four[r][p]} * tile[p * kTileSide + 2 * j] +
                     std::int32_t{four[r][p + 1]} * tile[p * kTileSide + 2 * j + 1];
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) float float_product_avx2(const float* a, const float* b,
                                                         std::size_t dim) {
  return float_product_body(a, b, dim);
}
__attribute__((target("avx512f"))) float float_product_avx512(const float* a, const float* b,
                                                              std::size_t dim) {
  return float_product_body(a, b, dim);
}

/// Returns two numbers of a sketch as 32 bits.
inline std::int32_t two(const std::int16_t* at) {
  std::int32_t both;
  std::memcpy(&both, at, sizeof both);
  return both;
}

__attribute__((target("avx2"))) void tile_products_avx2(const std::int16_t* const* four,
                                                        std::size_t width, const std::int16_t* tile,
                                                        TileProducts& out) {
  constexpr std::size_t kHalf = kTileSide / 2;  // a whole tile does not fit into the registers
  for (std::size_t half = 0; half < kTileSide; half += kHalf) {
    __m256i sum[4][2] = {};
    for (std::size_t p = 0; p < width; p += 2) {
      const std::int16_t* at = tile + p * kTileSide + 2 * half;
      const __m256i left = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
      const __m256i right = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at + kHalf));
      for (std::size_t r = 0; r < 4; ++r) {
        const __m256i pair = _mm256_set1_epi32(two(four[r] + p));
        sum[r][0] = _mm256_add_epi32(sum[r][0], _mm256_madd_epi16(pair, left));
        sum[r][1] = _mm256_add_epi32(sum[r][1], _mm256_madd_epi16(pair, right));
      }
    }
    for (std::size_t r = 0; r < 4; ++r)
      std::memcpy(&out[r][half], sum[r], sizeof sum[r]);
  }
}

__attribute__((target("avx512f,avx512vnni"))) void tile_products_vnni(
    const std::int16_t* const* four, std::size_t width, const std::int16_t* tile,
    TileProducts& out) {
  __m512i sum[4][2] = {};
  for (std::size_t p = 0; p < width; p += 2) {
    const std::int16_t* at = tile + p * kTileSide;
    const __m512i left = _mm512_loadu_si512(at), right = _mm512_loadu_si512(at + kTileSide);
    for (std::size_t r = 0; r < 4; ++r) {
      const __m512i pair = _mm512_set1_epi32(two(four[r] + p));
      sum[r][0] = _mm512_dpwssd_epi32(sum[r][0], pair, left);
      sum[r][1] = _mm512_dpwssd_epi32(sum[r][1], pair, right);
    }
  }
  std::memcpy(out, sum, sizeof sum);
}
#endif

using FloatProduct = float (*)(const float*, const float*, std::size_t);
FloatProduct choose_float_product() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return float_product_avx512;
  if (__builtin_cpu_supports("avx2")) return float_product_avx2;
#endif
  return float_product_plain;
}

using Products = void (*)(const std::int16_t* const*, std::size_t, const std::int16_t*,
                          TileProducts&);
Products choose_products() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512vnni")) return tile_products_vnni;
  if (__builtin_cpu_supports("avx2")) return tile_products_avx2;
#endif
  return tile_products_plain;
}

/// Writes n x `directions` numbers. `tiles` has the basis, and the last tile may be padded.
void project_rows(const std::vector<float>& tiles, const float* rows, std::size_t n,
                  std::size_t dim, std::size_t directions, float* out) {
  float product[kTileRows][kTileColumns];
  for (std::size_t i = 0; i < n; i += kTileRows) {
    const float* four[kTileRows];
    for (std::size_t r = 0; r < kTileRows; ++r)
      four[r] = rows + std::min(i + r, n - 1) * dim;
    for (std::size_t first = 0; first < directions; first += kTileColumns) {
      tile_row_products(four, dim, &tiles[first * dim], product);
      const std::size_t some = std::min(kTileColumns, directions - first);
      for (std::size_t r = 0; r < kTileRows && i + r < n; ++r)
        std::copy_n(product[r], some, out + (i + r) * directions + first);
    }
  }
}

/// Makes the columns orthonormal, one after the other. Two rounds for each are enough (Parlett).
void make_orthonormal(std::vector<double>& columns, std::size_t dim, std::size_t directions) {
  std::size_t axis = 0;
  const auto column = [&](std::size_t c) { return &columns[c * dim]; };
  const auto product = [&](const double* a, const double* b) {
    double sum = 0;
    for (std::size_t d = 0; d < dim; ++d)
      sum += a[d] * b[d];
    return sum;
  };
  for (std::size_t c = 0; c < directions;) {
    double* own = column(c);
    const double before = std::sqrt(product(own, own));
    for (int time = 0; time < 2; ++time)
      for (std::size_t other = 0; other < c; ++other) {
        const double along = product(own, column(other));
        for (std::size_t d = 0; d < dim; ++d)
          own[d] -= along * column(other)[d];
      }
    const double length = std::sqrt(product(own, own));
    if (!(length > kDependent * before)) {  // depends on earlier columns: try an axis
      std::fill(own, own + dim, 0.0);
      own[axis++] = 1;
      continue;
    }
    for (std::size_t d = 0; d < dim; ++d)
      own[d] /= length;
    ++c;
  }
}

std::vector<float> as_tiles(const std::vector<double>& columns, std::size_t dim,
                            std::size_t directions) {
  std::vector<float> tiles((directions + kTileColumns - 1) / kTileColumns * kTileColumns * dim);
  for (std::size_t c = 0; c < directions; ++c)
    for (std::size_t d = 0; d < dim; ++d)
      tiles[c / kTileColumns * kTileColumns * dim + d * kTileColumns + c % kTileColumns] =
          static_cast<float>(columns[c * dim + d]);
  return tiles;
}

/// Returns the matrix of second moments of the rows times the basis, as columns.
std::vector<double> moments_times(const std::vector<float>& tiles, const std::vector<float>& rows,
                                  std::size_t dim, std::size_t directions, share::Slots& slots) {
  const std::size_t n = rows.size() / dim;
  std::vector<double> columns(dim * directions);
  std::size_t next = 0;
  share::for_each_ordered<std::size_t, std::vector<float>>(
      slots,
      [&]() -> std::optional<std::size_t> {
        if (next >= n) return std::nullopt;
        return std::exchange(next, next + kTrainedAtOnce);
      },
      [&](std::size_t& first) {
        check_stop();
        const std::size_t some = std::min(kTrainedAtOnce, n - first);
        std::vector<float> seen(some * directions), sums(dim * directions);
        project_rows(tiles, &rows[first * dim], some, dim, directions, seen.data());
        for (std::size_t i = 0; i < some; ++i)
          for (std::size_t d = 0; d < dim; ++d) {
            const float value = rows[(first + i) * dim + d];
            for (std::size_t c = 0; c < directions; ++c)
              sums[d * directions + c] += value * seen[i * directions + c];
          }
        return sums;
      },
      [&](std::vector<float>& sums) {
        for (std::size_t d = 0; d < dim; ++d)
          for (std::size_t c = 0; c < directions; ++c)
            columns[c * dim + d] += sums[d * directions + c];
      });
  return columns;
}

}  // namespace

Sketcher Sketcher::train(const std::vector<float>& rows, std::size_t dim, std::size_t width,
                         share::Slots& slots) {
  Sketcher sketcher(dim, width);
  const std::size_t n = rows.size() / dim, directions = width - 1;
  if (dim <= directions || dim > kLongestTrained || n == 0) return sketcher;
  std::vector<double> columns(dim * directions);
  for (std::size_t c = 0; c < directions; ++c)
    std::copy_n(&rows[c * n / directions * dim], dim, &columns[c * dim]);
  make_orthonormal(columns, dim, directions);
  for (int time = 0; time < kIterations; ++time) {
    columns = moments_times(as_tiles(columns, dim, directions), rows, dim, directions, slots);
    make_orthonormal(columns, dim, directions);
  }
  sketcher.tiles_ = as_tiles(columns, dim, directions);
  return sketcher;
}

void Sketcher::sketch(const float* rows, std::size_t n, std::int16_t* out) const {
  const std::size_t directions = width_ - 1;
  std::vector<float> seen(n * directions);
  if (!tiles_.empty())
    project_rows(tiles_, rows, n, dim_, directions, seen.data());
  else
    for (std::size_t i = 0; i < n; ++i)
      std::copy_n(rows + i * dim_, std::min(dim_, directions), &seen[i * directions]);
  for (std::size_t i = 0; i < n; ++i) {
    double rest = 1;
    for (std::size_t c = 0; c < directions; ++c) {
      const float value = seen[i * directions + c];
      rest -= double{value} * value;
      out[i * width_ + c] = static_cast<std::int16_t>(std::lround(double{value} * kSketchScale));
    }
    const double length = std::sqrt(std::max(0.0, rest));
    out[i * width_ + directions] = static_cast<std::int16_t>(std::ceil(length * kSketchScale));
  }
}

void fill_tile(const std::int16_t* const* sketches, std::size_t n, std::size_t width,
               std::int16_t* tile) {
  if (n < kTileSide) std::memset(tile, 0, width * kTileSide * sizeof *tile);
  for (std::size_t j = 0; j < n; ++j)
    for (std::size_t p = 0; p < width; p += 2)
      std::memcpy(tile + p * kTileSide + 2 * j, sketches[j] + p, 2 * sizeof *tile);
}

void tile_products(const std::int16_t* const* four, std::size_t width, const std::int16_t* tile,
                   TileProducts& out) {
  static const Products products = choose_products();
  products(four, width, tile, out);
}

float float_product(const float* a, const float* b, std::size_t dim) {
  static const FloatProduct product = choose_float_product();
  return product(a, b, dim);
}

std::int32_t sketch_product(const std::int16_t* a, const std::int16_t* b, std::size_t width) {
  std::int32_t sum = 0;
  for (std::size_t p = 0; p < width; ++p)
    sum += std::int32_t{a[p]} * b[p];
  return sum;
}

}  // namespace vfm::curate
