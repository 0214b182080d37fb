// SPDX-License-Identifier: Apache-2.0
#include "train/plan/tp_chunks.h"

#include <algorithm>
#include <span>

#include "nn/chunked_rows.h"
#include "tensor/device.h"
#include "train/kind.h"

namespace vfm::train {
namespace {

constexpr int kMostChunksOfRank = 8;

}  // namespace

TpTime tp_time(const Recipe& recipe, const models::Gpu& gpu, const models::GroupOnNodes& tp,
               int chunks) {
  TpTime time;
  if (tp.ranks == 1) return time;
  const bool bf16 = recipe.compute() == DType::bf16;
  const double ranks = tp.ranks, element = bf16 ? 2 : 4,
               rate = gpu.products * (bf16 ? 1 : gpu.peak_f32 / gpu.peak),
               rows = static_cast<double>(recipe.data.tokens) / recipe.parallel.cp;
  const double of_rank = nn::chunks_of_rank(chunks, tp.ranks), messages = (ranks - 1) * of_rank;
  for (const models::TpProduct& product : kind_of(recipe.model.type).tp_products(recipe.model)) {
    const double width = product.width, bytes = (ranks - 1) / ranks * rows * width * element;
    // Once gathered, once summed.
    if (chunks == 1) {
      using enum dist::Operation;
      const double sent = models::link_seconds(gpu, all_gather, tp, 1, bytes) +
                          models::link_seconds(gpu, reduce_scatter, tp, 1, bytes);
      time.sent += sent;
      time.exposed += sent * (1 - gpu.tp_hidden);
      continue;
    }
    const double sent =
        2 * models::link_seconds(gpu, dist::Operation::exchange, tp, messages, bytes);
    const double multiplied = 2 * 2 * rows * width * product.columns / ranks / rate;
    time.sent += sent;
    time.exposed += gpu.cpu ? sent : std::max(0.0, sent - multiplied * (1 - 1 / (ranks * of_rank)));
    // The sum reads what each rank has of the own rows, and writes it once.
    time.added +=
        (2 * messages + 1) * gpu.gap + (ranks + 1) / ranks * rows * width * element / gpu.bandwidth;
  }
  return time;
}

int paying_tp_chunks(const Recipe& recipe, const models::Gpu& gpu, int per_node) {
  const int tp = recipe.parallel.tp;
  if (tp == 1) return 1;
  const models::GroupOnNodes group = models::worst_neighbours(tp, per_node);
  int best = 1;
  double least = tp_time(recipe, gpu, group, 1).total();
  for (int of_rank = 1; of_rank <= kMostChunksOfRank; of_rank *= 2) {
    const int chunks = tp * of_rank;
    if (recipe.data.tokens / recipe.parallel.cp < chunks * kLeastChunkRows) break;
    const double seconds = tp_time(recipe, gpu, group, chunks).total();
    if (seconds < least) least = seconds, best = chunks;
  }
  return best;
}

void settle_tp_chunks(Recipe& recipe, const models::Gpu* gpu, int per_node) {
  recipe.parallel.paying_chunks = gpu == nullptr ? 1 : paying_tp_chunks(recipe, *gpu, per_node);
}

void settle_tp_chunks(Recipe& recipe, Device device, dist::World& world) {
  settle_tp_chunks(recipe, gpu_here(device), world.least_local_size());
  world.broadcast(std::as_writable_bytes(std::span(&recipe.parallel.paying_chunks, 1)));
}

const models::Gpu* gpu_here(Device device) {
  return device == Device::cuda ? models::known_gpu(describe_gpu()) : nullptr;
}

}  // namespace vfm::train
