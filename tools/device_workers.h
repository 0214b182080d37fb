// What tools with --devices have in common: the workers that it asks for.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "base/slots.h"
#include "cards/find_cards.h"
#include "cards/stage_models.h"
#include "cli/options.h"

namespace vfm::cli {

/// --devices all|0,2|cpu: the cards on which models compute, each in a worker.
struct DevicesOptions {
  std::vector<std::string> devices;
  CLI::Option* option = nullptr;
  /// After --device, which it excludes.
  void add(CLI::App& app) {
    option = app.add_option("--devices", devices,
                            "compute on several: all GPUs, some by number, or cpu once or more");
    option->type_name("all|0,2|cpu")->delimiter(',')->allow_extra_args(false);
    option->excludes(app.get_option("--device"));
  }
  /// Found with the first call, none without the option. Throws Error{usage} for cards that are not
  /// there.
  const std::vector<Card>& cards() {
    if (found_.empty() && !devices.empty()) found_ = cards::find_cards(devices);
    return found_;
  }

 private:
  std::vector<Card> found_;
};

}  // namespace vfm::cli

/// The numbers of their GPUs, for media::choose_hardware(); without --devices, and of cpu, the
/// first. Throws what DevicesOptions::cards() throws.
inline std::vector<int> decoding_gpus(vfm::cli::DevicesOptions& options,
                                      const vfm::cli::HwaccelOptions& hwaccel) {
  std::vector<int> gpus;
  if (hwaccel.hwaccel != "none")
    for (const vfm::Card& card : options.cards())
      if (card.index >= 0) gpus.push_back(card.index);
  return gpus.empty() ? std::vector<int>{0} : gpus;
}

/// While items wait for cards, as many more are under way: so all cards are busy at any -j.
inline void await_workers(vfm::Slots& slots, const vfm::cards::StageModels* workers) {
  if (workers) slots.add_away(static_cast<int>(workers->together()));
}

/// Null where --devices is not given. Throws what DevicesOptions::cards() throws.
inline std::unique_ptr<vfm::cards::StageModels> workers_of(vfm::cli::DevicesOptions& options,
                                                           const vfm::cli::JobOptions& jobs,
                                                           const std::string& program) {
  if (options.devices.empty()) return nullptr;
  return std::make_unique<vfm::cards::StageModels>(options.cards(), jobs.share, program);
}
