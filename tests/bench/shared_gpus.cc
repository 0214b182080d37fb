// How pipes of programs share eight GPUs in virtual time (tests/support/gpu_loads.h), by the rule
// of share/gpu_rule.h: what is done of what the best static split does, and how a bottleneck that
// moves is followed. Prints a table, for tests/bench/RESULTS.md. No argument; a minute or two.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "support/gpu_loads.h"

namespace {

using namespace vfm;

/// Of several runs of a load: the mean, and the least.
struct Share {
  std::vector<double> all;
  double least() const { return *std::min_element(all.begin(), all.end()); }
  double mean() const {
    double sum = 0;
    for (const double one : all)
      sum += one;
    return sum / static_cast<double>(all.size());
  }
  std::string text() const {
    return all.size() == 1 ? fmt::format("{:.2f}", all[0])
                           : fmt::format("{:.2f} ({:.2f})", mean(), least());
  }
};

/// Prints a row. `seeds`: runs, with other sizes each.
void tell(GpuLoad load, std::uint64_t seeds) {
  const BestSplits best = best_splits(load, seeds > 1 ? 100 : 20);
  Share before, meanwhile, after, busy_before, busy_after, loads;
  for (load.seed = 0; load.seed < seeds; ++load.seed) {
    const Followed run = follow(load, best);
    before.all.push_back(run.before);
    meanwhile.all.push_back(run.meanwhile);
    after.all.push_back(run.after);
    busy_before.all.push_back(run.busy_before);
    busy_after.all.push_back(run.busy_after);
    loads.all.push_back(run.loads);
    if (!run.memory_kept) fmt::print("{}: more was loaded than memory holds\n", load.name);
  }
  fmt::print("| {} | {} | {} | {} | {} | {} | {:.1f} |\n", load.name, before.text(),
             meanwhile.text(), after.text(), busy_before.text(), busy_after.text(), loads.mean());
}

}  // namespace

int main() {
  constexpr std::uint64_t kSeeds = 10;
  fmt::print("| load | before | 7 s after the move | then | busy before | busy then | loads |\n");
  fmt::print("|---|--:|--:|--:|--:|--:|--:|\n");
  for (const GpuLoad& load : kGpuLoads)
    tell(load, 1);
  fmt::print("\n| results pile up | before | then |\n|---|--:|--:|\n");
  for (const GpuLoad& load : kGpuLoads) {
    const PiledUp rates = pile_up(load, best_splits(load));
    fmt::print("| {} | {:.2f} | {:.2f} |\n", load.name, rates.before, rates.after);
  }
  fmt::print("\n");
  for (const bool far : {false, true})
    for (GpuLoad load : kGpuLoads) {
      load.sizes = far ? unlike : spread;
      load.name += far ? ", one of 20 takes 20 times as long" : ", from a tenth to twice the mean";
      tell(load, kSeeds);
    }
  return 0;
}
