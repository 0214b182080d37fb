// The models of a program that compute in workers. Each GPU has one worker (workers/worker.h),
// which has all models.
//
// Call add() and add_sessions() only before the first request. Workers start with the first
// request. workers/pictures.h, workers/texts.h, workers/captions.h and workers/tokenizers.h add
// models that have the same interfaces as models in this process. Thread-safety: add() by one
// thread; then ask() from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "share/engine_sessions.h"
#include "share/gpu_board.h"
#include "share/ordered_flow.h"
#include "tensor/tensor.h"
#include "workers/parcel.h"
#include "workers/service.h"

namespace vfm::workers {

/// Bytes of GPU memory that a process uses for its context and the kernels' code.
inline constexpr std::int64_t kContextBytes = std::int64_t{768} << 20;

class StageModels {
 public:
  /// `gpus` is the result of find_gpus(), `share` the file of VFM_SHARE or empty, and `stage` the
  /// program's name.
  StageModels(std::vector<share::SharedGpu> gpus, std::string share, std::string stage);
  ~StageModels();
  StageModels(const StageModels&) = delete;
  StageModels& operator=(const StageModels&) = delete;

  Device device() const;
  /// Returns the largest number of requests that are answered at the same time.
  std::size_t together() const;
  /// Returns the counter of the program's results, for Slots::set_flow() (share/slots.h).
  std::shared_ptr<share::OrderedFlow> flow() const;
  /// Adds a service, which each worker opens with the parcel `open`. `memory` is the predicted
  /// number of bytes of the service's model and work on a GPU. Returns the number of the service
  /// for ask().
  std::size_t add(const std::string& service, Parcel open, std::int64_t memory);
  /// Lets the services decode or encode video on the GPU, in kOwnSessions sessions
  /// (share/engine_sessions.h). The memory of the sessions is added to the prediction. While the
  /// GPU computes a request, other programs have one session fewer on this GPU.
  void add_sessions(share::GpuKind kind);
  /// Checks the GPUs. Call it after the last add() and before the first request. Throws what
  /// GpuBoard's constructor throws.
  void start();
  /// Calls start(), and waits until a worker has opened the services. Throws what start() and
  /// WorkerPool::open() throw.
  void open();
  /// Asks the service `number` as WorkerPool::ask() does.
  Parcel ask(std::size_t number, Parcel request);
  /// Asks the service `number` as WorkerPool::ask_late() does.
  std::optional<Parcel> ask_late(std::size_t number,
                                 const std::function<std::optional<Parcel>()>& make);
  /// Frees the GPUs for other programs. No request may follow.
  void finished() noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Returns one service, which combines the services `parts`. The workers of StageModels run this
/// service. For Tool::serve_gpu():
///   return serve_gpu(channel, stage_services({{"pictures", open_pictures}}));
Services stage_services(const Services& parts);

}  // namespace vfm::workers
