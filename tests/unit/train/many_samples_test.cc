// Data of ten million samples: what a rank keeps of them, and how soon it has any pack.
// SPDX-License-Identifier: Apache-2.0
#include "support/many_samples.h"

#include <catch2/catch.hpp>
#include <chrono>
#include <set>

#include "support/private_bytes.h"
#include "support/temporary_folder.h"
#include "train/cost/workload.h"
#include "train/data/blend.h"
#include "train/data/pack_order.h"
#include "train/diffusion/data.h"
#include "train/recipe/recipe_file.h"

using namespace vfm;
using namespace vfm::train;

namespace {

#ifdef VFM_SLOW
constexpr std::uint64_t kSamples = 100'000;  // sanitizers have memory of their own, and take long
#else
constexpr std::uint64_t kSamples = 10'000'000;
#endif

double seconds_of(const std::function<void()>& act) {
  const auto begin = std::chrono::steady_clock::now();
  act();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

TEST_CASE("ten million samples take no memory of a rank's own, and any pack is found at once") {
  const TemporaryFolder folder;
  write_many(folder.path, {.samples = kSamples});
  [[maybe_unused]] const double before = private_bytes();
  Recipe recipe = make_recipe(parse_yaml(
      "model: {num_attention_heads: 2, attention_head_dim: 12, num_layers: 1, adaln_lora_dim: 4, "
      "max_size: [16, 8, 8]}\ndata: {tokens: 512, packs: 4}\n",
      "many"));
  const std::unique_ptr<Dataset> data = open_latents(folder.path, "train");
  data->fit(recipe);
  CHECK(data->size() == kSamples);
  CHECK(data->fingerprint().size() == 32);
  CHECK(data->facts()["trained"]["frames"] == 16);
  const std::uint64_t blocks = data::block_count(kSamples, data::Packing::blocks);
  CHECK(blocks == (kSamples + 16383) / 16384);
  const auto order = [&] {
    return PackOrder(data->size(), data->lengths(recipe.model), recipe.train.seed,
                     recipe.data.pack_options());
  };
  // In the middle of an epoch, at its end, and in a later one.
  for (const DataPosition at : {DataPosition{0, 17, blocks / 2}, DataPosition{7, 0, blocks - 1}}) {
    PackOrder there = order();
    data::Pack pack;
    CHECK(seconds_of([&] {
            there.seek(at);
            pack = there.next();
          }) < 2);
    REQUIRE(!pack.empty());
    std::int64_t tokens = 0;
    for (const std::size_t i : pack)
      tokens += token_count(data->sizes(i), recipe.model);
    CHECK(tokens <= 512);
    // What comes next is the same, wherever one comes from.
    const DataPosition next = there.position();
    const data::Pack second = there.next();
    PackOrder other = order();
    other.seek(next);
    CHECK(other.next() == second);
  }
  PackOrder last = order();
  last.seek({7, 0, blocks - 1});
  std::set<std::size_t> seen;
  while (last.position().epoch == 7)
    for (const std::size_t i : last.next())
      CHECK((last.position().epoch == 8 || seen.insert(i).second));
  CHECK(seen.size() == kSamples - (blocks - 1) * data::kBlock);
  CHECK(last.position().block == 0);
  const Workload load = measure(recipe, *data);
  CHECK(load.fill > 0.985);

  // A thousand to one with another folder: the same holds.
  const TemporaryFolder few;
  write_many(few.path, {.samples = kSamples / 1000});
  RunOptions options;
  options.recipe = recipe;
  options.recipe.data.weights = {1000, 1};
  settle_folders(options, {folder.path, few.path});
  const std::unique_ptr<Dataset> blend = open_data(options);
  blend->fit(options.recipe);
  const auto blended = [&] {
    return PackOrder(blend->order(1, data::Packing::blocks), blend->lengths(recipe.model),
                     recipe.data.pack_options());
  };
  PackOrder there = blended();
  CHECK(seconds_of([&] { there.seek({5, 0, blocks / 2}); }) < 2);
  std::size_t of_few = 0;
  for (const std::uint64_t i : blend->order(1, data::Packing::blocks)->block(5, blocks / 2))
    of_few += blend->source_of(i);
  CHECK((of_few == 16 || of_few == 17));
#ifndef VFM_SLOW
  CHECK(private_bytes() - before < 64 << 20);
#endif
}
