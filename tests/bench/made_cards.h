// Made cards of tests/bench/made_stage.cc: they have a speed and memory, their models take time to
// load, and their items sleep. What is decided about them is the board's (share/card_board.h).
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
#include "share/card_board.h"
#include "share/slots.h"

namespace vfm {

class MadeCards {
 public:
  void add_options(cli::Options& options) {
    options.add("--cards", cards_, "NAME:MEMORY[:SPEED],...", "the cards").separated_by(',');
    options.add("--stage", stage_, "NAME", "what this program is to the others that share");
    options.add("--model", model_, "N", "memory of its model");
    options.add("--load", load_seconds_, "SECONDS", "seconds that a load takes");
    options.add("--fails", fails_, "NAME:ITEM",
                "NAME:ITEM of a card: which item there is the first to fail");
    options.add("--card-log", log_path_, "FILE", "append loads and items: a line each, with when");
  }

  /// Whether there are cards.
  bool join(const std::string& share, share::Slots& slots) {
    if (cards_.empty()) return false;
    log_.open(log_path_);
    std::vector<share::Card> cards;
    for (const std::string& text : cards_) {
      const std::vector<std::string> parts = CLI::detail::split(text, ':');
      if (parts.size() < 2) fail_usage("--cards {}: NAME:MEMORY[:SPEED]", text);
      share::Card& card = cards.emplace_back();
      card.index = static_cast<int>(cards.size()) - 1;
      card.name = parts[0];
      card.memory = number(parts[1]);
      speeds_[card.name] = parts.size() > 2 ? std::stod(parts[2]) : 1;
    }
    if (const std::vector<std::string> parts = CLI::detail::split(fails_, ':'); parts.size() == 2)
      failing_ = parts[0], fails_from_ = number(parts[1]);
    share::CardBoard::Actions actions;
    actions.load = [this](const share::Card& card) {
      log("load", card.name, 1);
      sleep(load_seconds_);
      log("ready", card.name, 1);
    };
    actions.unload = [this](const share::Card& card) { log("load", card.name, -1); };
    const auto flow = std::make_shared<share::OrderedFlow>();
    board_ = std::make_unique<share::CardBoard>(
        share, cards,
        share::CardNeed{.stage = stage_, .memory = static_cast<std::int64_t>(model_), .flow = flow},
        std::move(actions));
    slots.set_flow(flow);
    slots.add_away(static_cast<int>(cards.size()));
    return true;
  }

  /// An item that takes so long on a card of speed 1; this thread has no slot meanwhile. Returns
  /// the card that did it.
  std::string work(double seconds) {
    const share::Slots::Away away;
    for (;;) {
      const auto lease = board_->take();
      const std::string& name = lease->card->name;
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
  void log(const char* what, const std::string& card, int by) {
    log_.write(
        fmt::format("{:.6f} {} {} {} {} {}\n", clock_seconds(), stage_, model_, what, card, by));
  }

  std::vector<std::string> cards_;
  std::string stage_ = "made_stage", fails_, failing_, log_path_;
  std::uint64_t model_ = 1;
  std::int64_t fails_from_ = 0;
  double load_seconds_ = 0;
  MadeLog log_;
  std::map<std::string, double> speeds_;
  std::atomic<std::int64_t> on_failing_ = 0;
  std::unique_ptr<share::CardBoard> board_;  // last: it calls back until it is gone
};

}  // namespace vfm
