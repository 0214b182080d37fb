// SPDX-License-Identifier: Apache-2.0
#include "train/cost/in_flight.h"

#include <memory>
#include <utility>

#include "tensor/meta.h"
#include "train/cost/memory.h"
#include "train/kind.h"
#include "train/step/training_step.h"

namespace vfm::train {

InFlight in_flight(const Recipe& recipe, int ranks, nn::Recompute recompute, Device device,
                   const std::vector<data::Entry>& pack, int rank) {
  const MetaAccount account(device);
  const std::unique_ptr<dist::World> world = dist::counted_world(rank, ranks);
  const Parallel parallel(recipe, *world);
  const std::unique_ptr<Objective> objective =
      kind_of(recipe.model.type)
          .make_objective(recipe, recompute, Device::meta, parallel.network());
  std::vector<data::Entry> samples;
  for (int i = 0; i < packs_of_rank(recipe, ranks).together; ++i)
    samples.insert(samples.end(), pack.begin(), pack.end());
  auto taken = static_cast<double>(account.memory().current), pinned = 0.0;
  const auto taken_since = [&account](double& before) {
    const auto now = static_cast<double>(account.memory().current);
    return now - std::exchange(before, now);
  };
  const int pp = parallel.network().pp_size(), chunks = pp * recipe.parallel.vpp;
  std::vector<std::unique_ptr<Batch>> batches;
  std::vector<std::unique_ptr<ChunkedPass>> passes;
  InFlight all;
  // Of the second microbatch: with the first one come buffers that all use.
  for (int microbatch = 0; microbatch < 2; ++microbatch) {
    all.chunks.clear();
    batches.push_back(objective->blank(samples));
    all.batch = taken_since(taken);
    passes.push_back(objective->pass_in_chunks(*batches.back()));
    for (int number = parallel.network().pp_rank(), i = 0; number < chunks; number += pp, ++i) {
      ChunkedPass& pass = *passes.back();
      nn::Streams made =
          pass.forward(i, number == 0 ? nn::Streams() : pass.blank(i, ChunkedPass::Side::input));
      ChunkInFlight& chunk = all.chunks.emplace_back();
      for (const Tensor& one : made) {
        ++chunk.sent.calls;
        chunk.sent.bytes += static_cast<double>(one.bytes());
      }
      made.clear();  // as once they are sent
      chunk.kept = taken_since(taken);
      chunk.pinned = static_cast<double>(account.pinned().current) - pinned;
      pinned += chunk.pinned;
    }
  }
  return all;
}

}  // namespace vfm::train
