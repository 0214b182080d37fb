// SPDX-License-Identifier: Apache-2.0
#include "curate/vectors/row_tiles.h"

#include <cstring>

namespace vfm::curate {
namespace {

using RowLanes = float __attribute__((vector_size(kTileColumns * sizeof(float))));

[[gnu::always_inline]] inline void row_products_body(const float* const* rows, std::size_t dim,
                                                     const float* tile, float* out) {
  RowLanes sum[kTileRows] = {};
  for (std::size_t d = 0; d < dim; ++d) {
    RowLanes lanes;
    std::memcpy(&lanes, tile + d * kTileColumns, sizeof lanes);
    for (std::size_t r = 0; r < kTileRows; ++r)
      sum[r] += rows[r][d] * lanes;
  }
  std::memcpy(out, sum, sizeof sum);
}
void row_products_plain(const float* const* rows, std::size_t dim, const float* tile, float* out) {
  row_products_body(rows, dim, tile, out);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) void row_products_avx2(const float* const* rows, std::size_t dim,
                                                       const float* tile, float* out) {
  row_products_body(rows, dim, tile, out);
}
__attribute__((target("avx512f"))) void row_products_avx512(const float* const* rows,
                                                            std::size_t dim, const float* tile,
                                                            float* out) {
  row_products_body(rows, dim, tile, out);
}
#endif

using RowProducts = void (*)(const float* const*, std::size_t, const float*, float*);

RowProducts choose_row_products() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return row_products_avx512;
  if (__builtin_cpu_supports("avx2")) return row_products_avx2;
#endif
  return row_products_plain;
}

}  // namespace

void tile_row_products(const float* const* rows, std::size_t dim, const float* tile,
                       float out[kTileRows][kTileColumns]) {
  static const RowProducts products = choose_row_products();
  products(rows, dim, tile, out[0]);
}

}  // namespace vfm::curate
