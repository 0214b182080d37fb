// SPDX-License-Identifier: Apache-2.0
#include "train/report/signs.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/json.h"

namespace vfm::train {
namespace {

constexpr double kMoment = 0.5;  // seconds: in shorter steps a scheduler's whims are all there is

/// The key that makes less of what an axis exchanges.
std::string less_of(std::string_view axis) {
  if (axis == "tp") return "lower 'parallel.tp', or keep it inside a machine";
  if (axis.starts_with("cp") && axis.find("dp") == std::string_view::npos)
    return "lower 'parallel.cp', or choose another 'parallel.cp_kind'";
  if (axis == "stages") return "lower 'parallel.vpp', or 'parallel.pp'";
  if (axis == "shards")
    return "share the state inside machines alone ('parallel.replicate'), or raise 'data.packs'";
  return "raise 'data.packs', so that gradients travel less often, or set 'parallel.reduce' bf16";
}

}  // namespace

std::vector<Sign> signs_of(const Signs& signs) {
  std::vector<Sign> all;
  const auto percent = [](double part) { return 100 * part; };
  if (signs.memory > kFullMemory)
    all.push_back(
        {"memory",
         fmt::format("memory is full to {:.0f} % of what is usable{}: {}", percent(signs.memory),
                     signs.memory > 1 ? "" : ", and a longer sample may not fit",
                     signs.less_memory)});
  if (signs.mfu < kLowMfu) {
    const bool talks = signs.exchanged > 0.2;
    all.push_back(
        {"mfu",
         fmt::format(
             "MFU is {:.0f} %, {}", percent(signs.mfu),
             talks ? fmt::format("as {:.0f} % of the time goes to what {} exchanges: {}",
                                 percent(signs.exchanged), signs.exchange, less_of(signs.exchange))
                   : "as kernels are small or wait: raise 'data.tokens' or "
                     "'data.micro_packs', or set 'model.compute' bf16")});
  }
  if (signs.bubble > kLongBubble)
    all.push_back({"bubble", fmt::format("stages wait {:.0f} % of the time: raise 'data.packs', so "
                                         "that each rank has more of them",
                                         percent(signs.bubble))});
  if (signs.data_wait > kLongDataWait)
    all.push_back({"data", fmt::format("ranks wait for data {:.0f} % of the time: give them more "
                                       "threads (-j), or put --data on a faster disk",
                                       percent(signs.data_wait))});
  if (signs.straggler > kSlowRank)
    all.push_back(
        {"straggler",
         signs.slowest < 0
             ? fmt::format("the rank with the fullest packs is busy {:.0f} % longer than the mean, "
                           "and all wait for it: raise 'data.window' or 'data.packs' for more even "
                           "shares",
                           percent(signs.straggler - 1))
             : fmt::format("rank {} on host {} is busy {:.0f} % longer than the mean, and all wait "
                           "for it: look at its machine, or raise 'data.window' for more even "
                           "packs",
                           signs.slowest, signs.slowest_host, percent(signs.straggler - 1))});
  return all;
}

Signs signs_of_timing(const Json& timing, double usable) {
  Signs signs;
  const double seconds = timing["seconds_per_step"].get<double>();
  if (usable > 0) signs.memory = timing["memory_peak"].get<double>() / usable;
  if (timing.contains("mfu")) signs.mfu = timing["mfu"].get<double>();
  double bubble = 0;
  if (timing.contains("wait_seconds"))
    for (const auto& [axis, waited] : timing["wait_seconds"].items()) {
      const double part = waited.get<double>() / seconds;
      if (axis == "pp")
        bubble = part;
      else if (part > signs.exchanged)
        signs.exchange = axis, signs.exchanged = part;
    }
  if (seconds < kMoment) return signs;
  signs.bubble = bubble;
  signs.data_wait = timing["data_wait"].get<double>();
  if (timing.contains("busy_seconds")) {
    const Json& busy = timing["busy_seconds"];
    if (const double mean = busy["mean"].get<double>(); mean > 0)
      signs.straggler = busy["most"].get<double>() / mean;
    signs.slowest = busy["rank"].get<int>();
    signs.slowest_host = get_string(busy, "host").value_or("?");
  }
  return signs;
}

Signs signs_of_plan(const Json& layout, double usable, double read_seconds) {
  Signs signs;
  const double seconds = layout["seconds"].get<double>();
  signs.memory = layout["memory_bytes"].get<double>() / usable;
  signs.mfu = layout["mfu"].get<double>();
  if (read_seconds > seconds) signs.data_wait = 1 - seconds / read_seconds;
  for (const auto& [term, value] : layout["terms"].items()) {
    const double part = value.get<double>() / seconds;
    if (term == "bubble") signs.bubble = part;
    if (term == "uneven packs") signs.straggler = 1 / std::max(1e-9, 1 - part);
    for (const char* exchange : {"tp", "cp", "stages", "gradients", "shards"})
      if (term == exchange && part > signs.exchanged) signs.exchange = term, signs.exchanged = part;
  }
  return signs;
}

Signs signs_of_shape(double memory, int pp, int vpp, double microbatches, double straggler) {
  Signs signs;
  signs.memory = memory;
  signs.bubble = (pp - 1) / (pp - 1 + vpp * std::max(1.0, microbatches));
  signs.straggler = straggler;
  return signs;
}

std::vector<std::string> SignWatch::news(const Json& timing, double usable,
                                         const std::function<std::string()>& less_memory) {
  std::vector<std::string> news;
  if (!std::exchange(begun_, true)) return news;
  std::map<std::string_view, int> in_a_row;
  for (auto& [kind, lines_without] : told_)
    ++lines_without;
  Signs signs = signs_of_timing(timing, usable);
  if (less_memory && signs.memory > kFullMemory) signs.less_memory = less_memory();
  for (const Sign& sign : signs_of(signs)) {
    const auto before = in_a_row_.find(sign.kind);
    const int lines = in_a_row[sign.kind] = before == in_a_row_.end() ? 1 : before->second + 1;
    if (const auto told = told_.find(sign.kind);
        told != told_.end() && told->second <= kLinesWithout) {
      told->second = 0;
      continue;
    }
    if (lines < (sign.kind == "memory" ? 1 : kLinesInARow)) continue;
    news.push_back(sign.words);
    told_[sign.kind] = 0;
  }
  in_a_row_ = std::move(in_a_row);
  return news;
}

}  // namespace vfm::train
