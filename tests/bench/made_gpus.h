// Made GPUs of tests/bench/made_stage.cc: they have a speed and memory, their models take time to
// load, and their items sleep. What is decided about them is the board's (share/gpu_board.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "cli/option_table.h"
#include "made_log.h"
#include "share/gpu_board.h"
#include "share/slots.h"

namespace vfm {

class MadeGpus {
 public:
  void add_options(cli::Options& options) {
    options.add("--gpus", gpus_, "NAME:MEMORY[:SPEED],...", "the GPUs").separated_by(',');
    options.add("--stage", stage_, "NAME", "what this program is to the others that share");
    options.add("--model", model_, "N", "memory of its model");
    options.add("--load", load_seconds_, "SECONDS", "seconds that a load takes");
    options.add("--fails", fails_, "NAME:ITEM",
                "NAME:ITEM of a gpu: which item there is the first to fail");
    options.add("--gpu-log", log_path_, "FILE", "append loads and items: a line each, with when");
  }

  /// Whether there are GPUs.
  bool join(const std::string& share, share::Slots& slots) {
    if (gpus_.empty()) return false;
    log_.open(log_path_);
    std::vector<share::SharedGpu> gpus;
    for (const std::string& text : gpus_) {
      const std::vector<std::string> parts = CLI::detail::split(text, ':');
      if (parts.size() < 2) fail_usage("--gpus {}: NAME:MEMORY[:SPEED]", text);
      share::SharedGpu& gpu = gpus.emplace_back();
      gpu.index = static_cast<int>(gpus.size()) - 1;
      gpu.name = parts[0];
      gpu.memory = number(parts[1]);
      speeds_[gpu.name] = parts.size() > 2 ? std::stod(parts[2]) : 1;
    }
    if (const std::vector<std::string> parts = CLI::detail::split(fails_, ':'); parts.size() == 2)
      failing_ = parts[0], fails_from_ = number(parts[1]);
    share::GpuBoard::Actions actions;
    actions.load = [this](const share::SharedGpu& gpu) {
      log("load", gpu.name, 1);
      sleep(load_seconds_);
      log("ready", gpu.name, 1);
    };
    actions.unload = [this](const share::SharedGpu& gpu) { log("load", gpu.name, -1); };
    const auto flow = std::make_shared<share::OrderedFlow>();
    board_ = std::make_unique<share::GpuBoard>(
        share, gpus,
        share::GpuNeed{.stage = stage_, .memory = static_cast<std::int64_t>(model_), .flow = flow},
        std::move(actions));
    slots.set_flow(flow);
    slots.add_away(static_cast<int>(gpus.size()));
    return true;
  }

  /// An item that takes so long on a GPU of speed 1; this thread has no slot meanwhile. Returns
  /// the GPU that did it.
  std::string work(double seconds) {
    const share::Slots::Away away;
    for (;;) {
      const auto lease = board_->take();
      const std::string& name = lease->gpu->name;
      log("item", name, 1);
      sleep(seconds / speeds_.at(name));
      log("item", name, -1);
      if (name == failing_ && ++on_failing_ >= fails_from_) {
        log("fails", name, 1);
        board_->fail(*lease, "it was made to");
        continue;
      }
      board_->give(*lease);
      return name;
    }
  }

  void finished() {
    if (board_) board_->finished();
  }

 private:
  static std::int64_t number(const std::string& text) {
    std::int64_t value = 0;
    const char* const end = text.data() + text.size();
    if (std::from_chars(text.data(), end, value).ptr != end) fail_usage("'{}' is no number", text);
    return value;
  }
  static void sleep(double seconds) {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  }
  /// WHEN STAGE MEMORY WHAT CARD BY
  void log(const char* what, const std::string& gpu, int by) {
    log_.write(
        fmt::format("{:.6f} {} {} {} {} {}\n", clock_seconds(), stage_, model_, what, gpu, by));
  }

  std::vector<std::string> gpus_;
  std::string stage_ = "made_stage", fails_, failing_, log_path_;
  std::uint64_t model_ = 1;
  std::int64_t fails_from_ = 0;
  double load_seconds_ = 0;
  MadeLog log_;
  std::map<std::string, double> speeds_;
  std::atomic<std::int64_t> on_failing_ = 0;
  std::unique_ptr<share::GpuBoard> board_;  // last: it calls back until it is gone
};

}  // namespace vfm
