// What tools with --devices have in common: the workers that it asks for. What decodes and encodes
// there: device_engines.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/engine_sessions.h"
#include "base/slots.h"
#include "cards/find_cards.h"
#include "cards/stage_models.h"
#include "cli/options.h"

namespace vfm::cli {

/// --devices all|0,2|cpu: the cards on which models compute, each in a worker.
struct DevicesOptions {
  std::vector<std::string> devices;
  /// After --device, which it excludes, if the tool has that.
  void add(Options& options) {
    OptionRow& row = options.add("--devices", devices, "all|0,2|cpu",
                                 "compute on several GPUs, each in a process");
    if (options.has("--device")) row.excludes(options.row("--device"));
    row.separated_by(',').explained_in("vfm-devices(7)");
  }
  /// Found with the first call, none without the option. Throws Error{usage} for cards that are not
  /// there: so Tool::check() calls it, late, as listing GPUs takes a second.
  const std::vector<Card>& cards() {
    if (found_.empty() && !devices.empty()) found_ = cards::find_cards(devices);
    return found_;
  }
  /// What sessions of this program have of the cards that are given from now on is not its models'.
  /// Without VFM_SHARE the models cannot know how much of it is in use: it counts as not there.
  void keep_for(const EngineSessions& sessions, bool shared) {
    for (Card& card : found_)
      (shared ? card.kept : card.memory) += (shared ? 1 : -1) * sessions.kept_bytes(card);
  }

 private:
  std::vector<Card> found_;
};

}  // namespace vfm::cli

/// While items wait for cards, as many more are under way: so all cards are busy at any -j.
inline void await_workers(vfm::Slots& slots, const vfm::cards::StageModels* workers) {
  if (!workers) return;
  slots.add_away(static_cast<int>(workers->together()));
  slots.set_flow(workers->flow());
}

/// Null where --devices is not given. Throws what DevicesOptions::cards() throws.
inline std::unique_ptr<vfm::cards::StageModels> workers_of(vfm::cli::DevicesOptions& options,
                                                           const vfm::cli::JobOptions& jobs,
                                                           const std::string& program) {
  if (options.devices.empty()) return nullptr;
  return std::make_unique<vfm::cards::StageModels>(options.cards(), jobs.share, program);
}
