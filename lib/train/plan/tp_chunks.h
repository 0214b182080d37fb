// In how many chunks rows travel along tp beside products (nn/chunked_rows.h): what pays, by the
// shapes that a rank has and the rates of a GPU and its links. For a run and for vfm-train plan.
//
// An exchange of T seconds beside a product of P in C chunks leaves T - P (1 - 1/C) exposed: rows
// of the rank's own are multiplied while the first come, and nothing hides the last chunk's
// product. Chunks cost what more kernels and messages take, and the sums, which the rank adds up
// itself. Backward is counted as forward, though there the gradient of a weight hides more. Counted
// is one pack: of more packs together chunks have more rows. Thread-safety: free functions, any
// thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "dist/world.h"
#include "models/gpu_table.h"
#include "models/link_time.h"
#include "train/recipe/recipe.h"

namespace vfm::train {

/// Seconds of all exchanges of a block that have a product, once gathered and once summed.
struct TpTime {
  double sent = 0;     ///< on their way
  double exposed = 0;  ///< of that, what nothing hides
  double added = 0;    ///< what chunks take besides: gaps between kernels, sums
  double total() const { return exposed + added; }
};
/// `recipe` is fitted to the data; `tp` the ranks along tp. Of a CPU nothing is hidden, as the same
/// cores compute and exchange. Of one chunk the GPU's table says what is (Gpu::tp_hidden).
TpTime tp_time(const Recipe& recipe, const models::Gpu& gpu, const models::GroupOnNodes& tp,
               int chunks);

/// Judged: a product of fewer rows than this does not reach the rates of the tables.
inline constexpr std::int64_t kLeastChunkRows = 512;

/// What takes least: 1, or chunks of kLeastChunkRows or more. `per_node` ranks are on one machine.
int paying_tp_chunks(const Recipe& recipe, const models::Gpu& gpu, int per_node);

/// Where the recipe leaves it open: what pays on that GPU; null, or one that no table has: 1.
void settle_tp_chunks(Recipe& recipe, const models::Gpu* gpu, int per_node);
/// The same of the GPU here. A collective: all have what pays on rank 0, whose GPU may be another.
void settle_tp_chunks(Recipe& recipe, Device device, dist::World& world);
/// The GPU here, if the table has it; on the CPU null.
const models::Gpu* gpu_here(Device device);

}  // namespace vfm::train
