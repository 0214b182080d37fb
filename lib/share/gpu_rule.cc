// SPDX-License-Identifier: Apache-2.0
#include "share/gpu_rule.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <utility>

namespace vfm::share {
namespace {

// A stage gives up its last GPU when it has had no item for `seconds` and for `loads` times the
// duration of a load. kAwayOfStarved applies if a stage with items has no GPU.
struct Away {
  double seconds, loads;
};
constexpr Away kAway{10, 5}, kAwayOfStarved{1, 0.5};
// Share of the time with waiting items from which on a stage is short of GPUs.
constexpr double kShort = 0.5;
// A move must gain more than its loads cost while the new placement lasts. It is assumed to last as
// long as the present one has lasted, within kLeastLasts and kMostLasts seconds. A gain below
// kLeastGain may be chance. A gain of kGreatGain is always enough.
constexpr double kLeastLasts = 8, kMostLasts = 40, kLeastGain = 0.05, kGreatGain = 0.5;
// Least work of a stage that is not idle, so that the stage gets a GPU.
constexpr double kLeastWork = 0.02;
// Least gain of one step.
constexpr double kStep = 0.02;
// A span has enough data if the error is at most kChance of the work.
constexpr double kChance = 0.1, kMostError = 0.9;
// Sets of stages are equally crowded if they differ by less than this factor.
constexpr double kNearly = 0.97;
constexpr std::size_t kAllSets = 6;  // Most stages of which all sets are tried.

/// A placement of models on GPUs, and its cost.
class Loading {
 public:
  Loading(std::span<const GpuStage> stages, std::span<const GpuPlace> gpus, Away away)
      : stages_(stages), gpus_(gpus) {
    for (const GpuStage& s : stages) {
      wanted.push_back(s.loaded);
      const double asked = s.known ? s.work : s.waiting;
      const double longest = std::max(away.seconds, away.loads * s.load_seconds);
      work_.push_back(s.idle < longest || s.waiting > 0 ? std::max(asked, kLeastWork) : 0);
    }
  }

  std::vector<GpuSet> wanted;

  /// Compared in this order: stages with items but no GPU, stages without a GPU, and how busy the
  /// GPUs of each set of the other stages are. The busiest sets weigh most.
  struct Cost {
    int starved = 0, without = 0;
    double crowded = 0;
    /// Returns whether this cost is less. A difference of `crowded` must be above the share `by`.
    bool is_less(const Cost& other, double by = 0) const {
      const std::pair here(starved, without), there(other.starved, other.without);
      return here < there || (here == there && crowded < other.crowded * (1 - by));
    }
  };
  Cost cost() const {
    Cost cost;
    for (std::size_t s = 0; s < stages_.size(); ++s)
      if (work_[s] > 0 && wanted[s] == 0) {
        ++cost.without;
        if (stages_[s].waiting > 0) ++cost.starved;
      }
    for_each_set([&](double busy) { cost.crowded += std::pow(busy, 8); });
    return cost;
  }

  /// Returns how much less crowded the most crowded sets are than in `before`. The result is
  /// negative if a set becomes more crowded than these were. With `chance` -1, errors speak against
  /// the move: stages that get GPUs need less than measured, and stages that lose GPUs need more.
  /// With 1, errors speak for the move. If no stage loses a GPU, errors do not matter.
  double gain(Loading before, int chance) const {
    const Cost now = cost(), then = before.cost();
    if (now.starved != then.starved || now.without != then.without)
      return now.is_less(then) ? kGreatGain : -1;
    Loading after = *this;
    const auto more = [&](std::size_t s) {
      return std::popcount(wanted[s]) - std::popcount(before.wanted[s]);
    };
    bool lost = false;
    for (std::size_t s = 0; s < stages_.size(); ++s)
      lost = lost || more(s) < 0;
    for (std::size_t s = 0; s < stages_.size() && lost; ++s) {
      const double error = std::min(stages_[s].error, kMostError);
      const double by = chance * error * (more(s) > 0 ? 1 : more(s) < 0 ? -1 : 0);
      if (stages_[s].known) before.work_[s] = after.work_[s] = work_[s] * (1 + by);
    }
    return gain_over(before.crowds(), after.crowds());
  }

  bool present(std::size_t stage) const { return work_[stage] > 0; }

  /// Loads the model of a stage on a GPU, and unloads others if memory is short. Returns false if
  /// this is impossible, or if a stage that never had a GPU would get more GPUs than it has items.
  bool add(std::size_t stage, int gpu) {
    const GpuSet bit = gpu_bit(gpu);
    const GpuStage& s = stages_[stage];
    if ((wanted[stage] & bit) != 0 || (s.may & bit) == 0) return false;
    if (!s.known && std::popcount(wanted[stage]) >= std::max(s.waiting, 1)) return false;
    wanted[stage] |= bit;
    return fit(gpu, stage);
  }

  /// Unloads models, but not that of stage `but`, until the others fit. Returns false if they
  /// cannot fit.
  bool fit(int gpu, std::size_t but) {
    while (used(gpu) > gpus_[static_cast<std::size_t>(gpu)].free)
      if (!remove_one(but, gpu)) return false;
    return true;
  }

 private:
  std::int64_t used(int gpu) const {
    std::int64_t sum = 0;
    for (std::size_t s = 0; s < stages_.size(); ++s)
      if ((wanted[s] & gpu_bit(gpu)) != 0) sum += stages_[s].memory;
    return sum;
  }

  /// Unloads the model whose loss costs least, but no stage's last one.
  bool remove_one(std::size_t but, int gpu) {
    const GpuSet bit = gpu_bit(gpu);
    std::size_t best = stages_.size();
    Cost least;
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      const bool last = work_[s] > 0 && wanted[s] == bit;
      if (s == but || (wanted[s] & bit) == 0 || (stages_[s].fixed & bit) != 0 || last) continue;
      wanted[s] &= ~bit;
      const Cost then = cost();
      wanted[s] |= bit;
      if (best == stages_.size() || then.is_less(least)) best = s, least = then;
    }
    if (best == stages_.size()) return false;
    wanted[best] &= ~bit;
    return true;
  }

  std::vector<double> crowds() const {
    std::vector<double> all;
    for_each_set([&](double busy) { all.push_back(busy); });
    return all;
  }

  static double gain_over(const std::vector<double>& before, const std::vector<double>& after) {
    if (before.empty()) return 0;
    const double most = *std::max_element(before.begin(), before.end());
    const double most_after = *std::max_element(after.begin(), after.end());
    if (most_after > most * 1.000001) return most / most_after - 1;
    if (most / most_after > 2 - kNearly) return most / most_after - 1;
    // Other sets are still as crowded, but perhaps only because they run ahead and fill pipes.
    double gain = 0;
    for (std::size_t q = 0; q < before.size(); ++q)
      if (before[q] >= kNearly * most) gain = std::max(gain, before[q] / after[q] - 1);
    return gain;
  }

  /// Calls `act` for each set of stages with the work of the set for each of its GPUs. More than 1
  /// means that the GPUs are too few for the present rate. Stages without a GPU are in no set.
  template <class Act>
  void for_each_set(Act act) const {
    const std::size_t n = stages_.size();
    const auto one = [&](auto has) {
      double work = 0;
      GpuSet set = 0;
      for (std::size_t s = 0; s < n; ++s)
        if (has(s) && work_[s] > 0 && wanted[s] != 0) work += work_[s], set |= wanted[s];
      if (work > 0) act(work / std::popcount(set));
    };
    if (n <= kAllSets) {
      for (unsigned q = 1; q < 1u << n; ++q)
        one([q](std::size_t s) { return (q >> s & 1) != 0; });
      return;
    }
    for (std::size_t i = 0; i < n; ++i)
      one([i](std::size_t s) { return s == i; });
    one([](std::size_t) { return true; });
  }

  std::span<const GpuStage> stages_;
  std::span<const GpuPlace> gpus_;
  std::vector<double> work_;
};

/// Loads the model that reduces the cost most. Returns false if no load reduces the cost enough.
bool step(Loading& loading, std::span<const GpuStage> stages, std::span<const GpuPlace> gpus) {
  Loading best = loading;
  Loading::Cost least = loading.cost();
  bool found = false;
  for (std::size_t s = 0; s < stages.size(); ++s)
    for (std::size_t c = 0; c < gpus.size() && loading.present(s); ++c) {
      Loading next = loading;
      if (!next.add(s, static_cast<int>(c))) continue;
      const Loading::Cost cost = next.cost();
      if (cost.is_less(least, found ? 0 : kStep)) best = next, least = cost, found = true;
    }
  loading = best;
  return found;
}

std::vector<GpuSet> plan_by(std::span<const GpuStage> stages, std::span<const GpuPlace> gpus,
                            double least_gain, Away away) {
  const Loading now(stages, gpus, away);
  Loading next = now;
  for (std::size_t steps = 0; steps < 2 * gpus.size() && step(next, stages, gpus);)
    ++steps;
  return next.gain(now, -1) >= least_gain ? next.wanted : now.wanted;
}

bool is_sure(std::span<const GpuStage> stages) {
  double work = 0, chance = 0;
  for (const GpuStage& s : stages)
    work += s.work, chance += s.work * s.error;
  return chance <= kChance * work;
}

bool is_short(const GpuStage& s) {
  return s.waiting > 0 && (s.short_of >= kShort || s.loaded == 0);
}

}  // namespace

std::vector<GpuSet> plan_gpus(std::span<const std::vector<GpuStage>> spans,
                              std::span<const GpuPlace> gpus, double lasted) {
  Loading now(spans[0], gpus, kAway);
  const std::vector<GpuSet> before = now.wanted;
  for (std::size_t c = 0; c < gpus.size(); ++c)
    now.fit(static_cast<int>(c), before.size());
  if (now.wanted != before) return now.wanted;
  double load_seconds = 0;
  bool starved = false;
  for (const GpuStage& s : spans[0]) {
    load_seconds = std::max(load_seconds, s.load_seconds);
    starved = starved || (s.waiting > 0 && s.loaded == 0);
  }
  const double least = std::clamp(load_seconds / std::clamp(lasted, kLeastLasts, kMostLasts),
                                  kLeastGain, kGreatGain);
  const auto speaks_against = [&](const std::vector<GpuStage>& stages, Away away,
                                  const std::vector<GpuSet>& plan) {
    const Loading old(stages, gpus, away);
    Loading then = old;
    then.wanted = plan;
    return then.gain(old, 1) < least;
  };
  for (const Away away : {kAway, kAwayOfStarved}) {
    for (auto span = spans.begin(); span != spans.end(); ++span) {
      if (std::none_of(span->begin(), span->end(), is_short)) continue;
      const std::vector<GpuSet> plan = plan_by(*span, gpus, least, away);
      if (plan != before && std::none_of(spans.begin(), span, [&](const auto& shorter) {
            return speaks_against(shorter, away, plan);
          }))
        return plan;
      if (is_sure(*span)) break;
    }
    if (!starved) break;
  }
  return before;
}

int gpu_for_item(std::span<const GpuClaim> claims, std::size_t own, GpuSet free,
                 std::span<const GpuPlace> gpus, bool* left) {
  int best = -1;
  std::pair<int, int> best_rank;
  for (std::size_t c = 0; c < gpus.size(); ++c) {
    const GpuSet bit = gpu_bit(static_cast<int>(c));
    if ((free & claims[own].ready & bit) == 0) continue;
    int others = 0;
    bool later = false;
    for (std::size_t s = 0; s < claims.size(); ++s)
      if (s != own && claims[s].waiting > 0 && (claims[s].ready & bit) != 0) {
        ++others;
        later = later || claims[s].place > claims[own].place;
      }
    if (later && left) *left = true;
    if (later) continue;
    const std::pair rank(-others, gpus[c].sessions);
    if (best < 0 || rank > best_rank) best = static_cast<int>(c), best_rank = rank;
  }
  return best;
}

}  // namespace vfm::share
