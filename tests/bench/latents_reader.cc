// Training-ready batches of latents by vfm's own data path: read by index in a random order,
// decoded from halves, scaled to model units, checked, and packed; or with noise as well. Usage:
// latents_reader FOLDER BATCH SECONDS clean|noise      prints samples a second The other side is
// latents_reader.py; latents_reader.sh takes both in turns.
// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/philox.h"
#include "train/diffusion/batch.h"
#include "train/diffusion/data.h"

using namespace vfm;

namespace {

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const auto set = train::open_latents(argv[1], "train");
  const train::Dataset& data = *set;
  const std::size_t batch = std::strtoul(argv[2], nullptr, 10);
  const double limit = std::strtod(argv[3], nullptr);
  const bool noise = std::string(argv[4]) == "noise";
  train::Recipe recipe;
  data.fit(recipe);
  long done = 0;
  double sum = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (std::uint32_t epoch = 0; seconds_since(begin) < limit; ++epoch) {
    const std::vector<std::uint64_t> order =
        Random(0, Purpose::data_order, epoch).permutation(data.size());
    for (std::size_t at = 0; at + batch <= order.size(); at += batch) {
      train::BatchBuilder builder(recipe.model.dit);
      for (std::size_t i = at; i < at + batch; ++i) {
        const train::CleanSample sample = data.read(order[i]);
        const Random random(0, Purpose::noise, epoch, random_key(sample.key));
        builder.add(sample, 1.0, false, random);
      }
      const Tensor latents =
          noise ? builder.build().input.latents : builder.build_clean().batch.input.latents;
      sum += latents.floats()[0];
      done += static_cast<long>(batch);
      if (seconds_since(begin) >= limit) break;
    }
  }
  const double seconds = seconds_since(begin);
  std::fprintf(stderr, "(first values add up to %g)\n", sum);
  std::printf("%.0f\n", static_cast<double>(done) / seconds);
  return 0;
}
