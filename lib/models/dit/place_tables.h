// Tables that follow from where tokens are, and from nothing else. They are kept from one pass to
// the next: the host works tens of milliseconds on those of a large clip, which each step of
// sampling asks for again.
// Thread-safety: of() from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "ops/position/positions.h"
#include "ops/tape.h"
#include "tensor/gpu_graph.h"

namespace vfm::models {

template <class Tables>
class PlaceTables {
 public:
  /// Returns make(grids), or what the last call that kept it returned for equal grids. Training is
  /// not kept, because it has other sizes each time, nor is what a GPU graph records, because the
  /// graph keeps its own (tensor/gpu_graph.h).
  template <class Make>
  std::shared_ptr<const Tables> of(const ops::Tape& tape, const std::vector<ops::TokenGrid>& grids,
                                   const Make& make) {
    const bool keep = !tape.recording() && !GpuGraph::recording();
    if (keep) {
      const std::lock_guard lock(mutex_);
      if (kept_ && grids_ == grids) return kept_;
      kept_ = nullptr;
    }
    auto made = std::make_shared<const Tables>(make(grids));
    if (!keep) return made;
    const std::lock_guard lock(mutex_);
    grids_ = grids;
    kept_ = made;
    return made;
  }

 private:
  std::mutex mutex_;
  std::vector<ops::TokenGrid> grids_;
  std::shared_ptr<const Tables> kept_;
};

}  // namespace vfm::models
