// The number of chunks in which rows travel along tp during products (nn/chunked_rows.h). The best
// number follows from the shapes on a rank and the rates of a GPU and its links. For a run and for
// vfm-train plan.
//
// An exchange of T seconds during a product of P in C chunks leaves T - P (1 - 1/C) exposed. The
// rank multiplies its own rows while the first ones come, and nothing hides the product of the last
// chunk. Chunks cost more kernels and messages, and sums that the rank computes itself. Backward is
// counted as forward, though there the gradient of a weight hides more. One pack is counted; with
// more packs together chunks have more rows. Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "dist/world.h"
#include "models/gpu_table.h"
#include "models/link_time.h"
#include "train/recipe/recipe.h"

namespace vfm::train {

/// Seconds of the exchanges of a block that go with a product, one gather and one sum for each.
struct TpTime {
  double sent = 0;     ///< time of messages
  double exposed = 0;  ///< part of `sent` that is not hidden
  double added = 0;    ///< cost of chunks: gaps between kernels, sums
  double total() const { return exposed + added; }
};
/// `recipe` is fitted to the data; `tp` is the group of the ranks along tp. With one chunk the
/// GPU's table says what is hidden (Gpu::tp_hidden). On a CPU nothing is hidden, as the same cores
/// compute and exchange.
TpTime tp_time(const Recipe& recipe, const models::Gpu& gpu, const models::GroupOnNodes& tp,
               int chunks);

/// A judgement: a product of fewer rows does not reach the rates of the tables.
inline constexpr std::int64_t kLeastChunkRows = 512;

/// The fastest number of chunks: 1, or chunks of at least kLeastChunkRows rows. `per_node` ranks
/// are on one machine.
int paying_tp_chunks(const Recipe& recipe, const models::Gpu& gpu, int per_node);

/// Sets recipe.parallel.paying_chunks, for recipes that leave the number open: the best number on
/// that GPU, or 1 if `gpu` is null.
void settle_tp_chunks(Recipe& recipe, const models::Gpu* gpu, int per_node);
/// The same for the GPU of this machine. A collective: all ranks get the number of rank 0.
void settle_tp_chunks(Recipe& recipe, Device device, dist::World& world);
/// The GPU of this machine if the table has it; null otherwise, and on the CPU.
const models::Gpu* gpu_here(Device device);

}  // namespace vfm::train
