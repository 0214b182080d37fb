// SPDX-License-Identifier: Apache-2.0
#include "train/report/rank_timing.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/units.h"
#include "models/gpu.h"
#include "tensor/device.h"

namespace vfm::train {
namespace {

// Mean and most over the ranks, and the first rank that has the most, with its host.
Json spread_of(const std::vector<Json>& ranks, const char* key) {
  double sum = 0, most = 0;
  std::size_t rank = 0;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const double value = ranks[i][key].get<double>();
    sum += value;
    if (i == 0 || value > most) most = value, rank = i;
  }
  return {{"mean", sum / static_cast<double>(ranks.size())},
          {"most", most},
          {"rank", rank},
          {"host", ranks[rank]["host"]}};
}

// Of each axis, the most that a rank has.
Json most_of(const std::vector<Json>& ranks, const char* key) {
  Json most = Json::object();
  for (const Json& rank : ranks)
    for (const auto& [axis, value] : rank[key].items())
      most[axis] = std::max(most.value(axis, 0.0), value.get<double>());
  return most;
}

}  // namespace

Json rates_of(const Done& done, int ranks) {
  Json rates = Json::object();
  for (const auto& [name, amount] : {std::pair{"tokens_per_second", done.tokens},
                                     {"samples_per_second", done.samples},
                                     {"tflops", done.flops * 1e-12}}) {
    rates[name] = amount / done.seconds;
    rates[std::string(name) + "_per_rank"] = amount / done.seconds / ranks;
  }
  return rates;
}

std::string slowest_words(const Json& timing) {
  const Json* const busy = timing.contains("busy_seconds") ? &timing["busy_seconds"] : nullptr;
  if (busy == nullptr || !busy->contains("host")) return "";
  return fmt::format("rank {} on host {}: busy {:.3g} s a step, the mean is {:.3g} s",
                     (*busy)["rank"].get<int>(), (*busy)["host"].get<std::string>(),
                     (*busy)["most"].get<double>(), (*busy)["mean"].get<double>());
}

std::string rates_words(const Json& timing) {
  const auto rates = [&](const std::string& of) {
    std::vector<std::string> words;
    for (const auto& [name, unit] : {std::pair{"tokens_per_second", "tokens/s"},
                                     {"samples_per_second", "samples/s"},
                                     {"tflops", "TFLOP/s"}})
      if (const auto rate = get_number(timing, (name + of).c_str()))
        words.push_back(fmt::format("{} {}", format_count(*rate), unit));
    return fmt::format("{}", fmt::join(words, ", "));
  };
  const std::string all = rates(""), each = rates("_per_rank");
  return each.empty() || each == all ? all : fmt::format("{}; a rank {}", all, each);
}

Json timing_of_ranks(dist::World& world, const RankTiming& own) {
  const auto steps = static_cast<double>(own.steps);
  dist::Traffic& traffic = world.traffic();
  Json wait = Json::object(), sent = Json::object();
  double waited = 0;
  for (const std::string& axis : traffic.axes()) {
    wait[axis] = traffic.seconds(axis) / steps;
    sent[axis] = static_cast<double>(traffic.of(axis).bytes) / steps;
    waited += traffic.seconds(axis);
  }
  traffic.reset();
  const Json here = {{"host", world.host()},
                     {"busy", std::max(0.0, own.seconds - waited) / steps},
                     {"data", own.data_seconds / steps},
                     {"read", own.read_bytes / steps},
                     {"memory", own.memory_peak},
                     {"wait", std::move(wait)},
                     {"sent", std::move(sent)}};
  std::vector<Json> ranks;
  for (const std::string& text : world.gather(dump_json(here)))
    ranks.push_back(parse_json(text, "a rank's timing"));
  if (ranks.empty()) return Json::object();
  return {{"busy_seconds", spread_of(ranks, "busy")}, {"data_seconds", spread_of(ranks, "data")},
          {"read_bytes", spread_of(ranks, "read")},   {"memory_ranks", spread_of(ranks, "memory")},
          {"wait_seconds", most_of(ranks, "wait")},   {"sent_bytes", most_of(ranks, "sent")}};
}

double peak_tflops(const Recipe& recipe, Device device) {
  if (recipe.train.peak_tflops > 0) return recipe.train.peak_tflops;
  return device == Device::cuda && recipe.compute() == DType::bf16 ? models::gpu_peak_tflops() : 0;
}

}  // namespace vfm::train
