// The workers of tools with --device: processes that run models, one on each GPU.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "cli/options.h"
#include "share/engine_sessions.h"
#include "share/slots.h"
#include "workers/find_gpus.h"
#include "workers/stage_models.h"

namespace vfm::cli {

/// The option --device auto|cpu|cuda|all|0,2, which chooses where models compute. "all" or a list
/// asks for workers. "cpu," is a list with one worker on the processor.
struct WorkerOptions : DeviceOptions {
  OptionRow& add_workers(Options& options) {
    return options
        .add("--device", device, "auto|cpu|cuda|all|0,2",
             "where to compute; all, 0,2: on several GPUs, each in a process")
        .explained_in("vfm-devices(7)");
  }
  bool workers() const { return asks_workers(device); }
  /// Returns the GPUs of the workers, or an empty list if --device asks for no workers. The first
  /// call lists the GPUs, which takes a second, so Tool::check() should call gpus() last. Throws
  /// Error{usage} for GPUs that do not exist.
  const std::vector<share::SharedGpu>& gpus() {
    if (!found_.empty() || !workers()) return found_;
    std::vector<std::string> names;
    std::istringstream list(device);
    for (std::string name; std::getline(list, name, ',');)
      names.push_back(name);
    return found_ = workers::find_gpus(names);
  }
  /// Reserves memory of the GPUs for this program's sessions, so that models do not use this
  /// memory. `shared` tells whether VFM_SHARE is set. If it is not set, the reserved bytes are
  /// subtracted from SharedGpu::memory.
  void keep_for(const share::EngineSessions& sessions, bool shared) {
    for (share::SharedGpu& gpu : found_)
      (shared ? gpu.kept : gpu.memory) += (shared ? 1 : -1) * sessions.kept_bytes(gpu);
  }

 private:
  std::vector<share::SharedGpu> found_;
};

}  // namespace vfm::cli

/// Makes `slots` allow one more item at a time for each worker, so that all GPUs are busy even with
/// -j 1.
inline void await_workers(vfm::share::Slots& slots, const vfm::workers::StageModels* workers) {
  if (!workers) return;
  slots.add_away(static_cast<int>(workers->together()));
  slots.set_flow(workers->flow());
}

/// Returns the workers that --device asks for, or null. Throws the errors of
/// WorkerOptions::gpus().
inline std::unique_ptr<vfm::workers::StageModels> workers_of(vfm::cli::WorkerOptions& options,
                                                             const vfm::cli::JobOptions& jobs,
                                                             const std::string& program) {
  if (!options.workers()) return nullptr;
  return std::make_unique<vfm::workers::StageModels>(options.gpus(), jobs.share, program);
}
