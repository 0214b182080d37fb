// The workers of a program: one on each GPU on which a GpuBoard (share/gpu_board.h) loads the
// program's models.
//
// ask() takes a GPU for one request, asks the worker of the GPU, and gives the GPU back. If the
// worker dies or the GPU fails, an error in the log names the GPU, and the GPU is not used again.
// The worker of a second GPU then gets the request. If the second worker dies, too, the request
// fails, and the second GPU gets a new worker. If the worker of the only remaining GPU dies, this
// GPU gets a new worker. A service's answer must not depend on the worker or on earlier requests.
//
// A thread that asks gives back its slot of the processor (share/slots.h) while it waits for a GPU,
// and while the GPU computes. A worker on the processor uses the slot of the thread that asks.
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "share/gpu_board.h"
#include "workers/worker.h"

namespace vfm::workers {

class WorkerPool {
 public:
  /// `share` is the file of VFM_SHARE, or empty. `gpus` is the result of find_gpus().
  /// `need.memory` is the predicted memory of the service. Throws what GpuBoard's constructor
  /// throws.
  WorkerPool(const std::string& share, std::vector<share::SharedGpu> gpus, share::GpuNeed need,
             WorkerPlan plan);
  /// Ends all workers, and waits until they have ended. All calls of ask() must have returned.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  /// Waits until a worker has opened the service. Call it before the first request. Throws what
  /// ask() throws, or the service's Error{usage} if the service cannot open because of a wrong
  /// option or file.
  void open();
  /// Returns the answer. Throws Stopped and the service's Error. Throws Error{crash} if the request
  /// killed two workers, and Error{device}, with the reasons, if no GPU can be used.
  Parcel ask(const Parcel& request);
  /// Waits for a worker, calls `make` once, and sends the request that `make` returns to the
  /// worker. If `make` returns nothing, returns nothing. Throws what ask() throws.
  std::optional<Parcel> ask_late(const std::function<std::optional<Parcel>()>& make);
  /// Frees the GPUs for other programs. No request may follow.
  void finished() noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vfm::workers
