// What tools have in common whose --device may ask for workers. What decodes and encodes there:
// device_engines.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "cli/options.h"
#include "share/engine_sessions.h"
#include "share/slots.h"
#include "workers/find_cards.h"
#include "workers/stage_models.h"

namespace vfm::cli {

/// --device auto|cpu|cuda|all|0,2: where to compute, or the cards on which workers do. "cpu," is a
/// list, too: a worker on the processor.
struct WorkerOptions : DeviceOptions {
  OptionRow& add_workers(Options& options) {
    return options
        .add("--device", device, "auto|cpu|cuda|all|0,2",
             "where to compute; all, 0,2: on several GPUs, each in a process")
        .explained_in("vfm-devices(7)");
  }
  bool workers() const { return asks_workers(device); }
  /// Found with the first call, none without workers. Throws Error{usage} for cards that are not
  /// there: so Tool::check() calls it, late, as listing GPUs takes a second.
  const std::vector<share::Card>& cards() {
    if (!found_.empty() || !workers()) return found_;
    std::vector<std::string> names;
    std::istringstream list(device);
    for (std::string name; std::getline(list, name, ',');)
      names.push_back(name);
    return found_ = workers::find_cards(names);
  }
  /// What sessions of this program have of the cards that are given from now on is not its models'.
  /// Without VFM_SHARE the models cannot know how much of it is in use: it counts as not there.
  void keep_for(const share::EngineSessions& sessions, bool shared) {
    for (share::Card& card : found_)
      (shared ? card.kept : card.memory) += (shared ? 1 : -1) * sessions.kept_bytes(card);
  }

 private:
  std::vector<share::Card> found_;
};

}  // namespace vfm::cli

/// While items wait for cards, as many more are under way: so all cards are busy at any -j.
inline void await_workers(vfm::share::Slots& slots, const vfm::workers::StageModels* workers) {
  if (!workers) return;
  slots.add_away(static_cast<int>(workers->together()));
  slots.set_flow(workers->flow());
}

/// Null where --device asks for none. Throws what WorkerOptions::cards() throws.
inline std::unique_ptr<vfm::workers::StageModels> workers_of(vfm::cli::WorkerOptions& options,
                                                             const vfm::cli::JobOptions& jobs,
                                                             const std::string& program) {
  if (!options.workers()) return nullptr;
  return std::make_unique<vfm::workers::StageModels>(options.cards(), jobs.share, program);
}
