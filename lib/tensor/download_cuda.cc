// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <future>
#include <utility>

#include "tensor/device.h"
#include "tensor/device_cuda.h"
#include "tensor/download.h"

namespace vfm {
namespace {

cudaStream_t download_stream() {
  static const cudaStream_t stream = [] {
    cudaStream_t made = nullptr;
    check_gpu(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking), "make a stream");
    return made;
  }();
  return stream;
}

// Pinned memory, or nothing yet, and an event that no thread spins on.
struct Room {
  void* at = nullptr;
  cudaEvent_t done = nullptr;

  Room(std::size_t bytes) {
    check_gpu(cudaEventCreateWithFlags(&done, cudaEventDisableTiming | cudaEventBlockingSync),
              "make an event");
    if (bytes > 0) check_gpu(cudaMallocHost(&at, bytes), "get pinned memory");
  }
  ~Room() {
    cudaFreeHost(at);
    if (done != nullptr) cudaEventDestroy(done);
  }
  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;
};

}  // namespace

struct Download::State {
  std::array<Room, kAtOnce> rooms{kMostBytes, kMostBytes, kMostBytes, kMostBytes};
  Room begin{0}, end{0};  // events alone
  std::atomic<bool> given_up = false;
  std::future<void> queued, taken;

  void run(const std::vector<Piece>& pieces, const Take& take, std::promise<void>& all_queued);
};

// On the thread of its own.
void Download::State::run(const std::vector<Piece>& pieces, const Take& take,
                          std::promise<void>& all_queued) {
  use_this_gpu();
  const cudaStream_t stream = download_stream();
  check_gpu(cudaStreamWaitEvent(stream, begin.done, 0), "wait for what is computed");
  std::size_t next = 0;
  const auto queue = [&] {
    if (next == pieces.size()) return;
    Room& room = rooms[next % kAtOnce];
    auto* at = static_cast<std::byte*>(room.at);
    for (const Part& part : pieces[next]) {
      check_gpu(cudaMemcpyAsync(at, part.from, part.bytes, cudaMemcpyDeviceToHost, stream),
                "copy from the GPU");
      at += part.bytes;
    }
    check_gpu(cudaEventRecord(room.done, stream), "record an event");
    if (++next < pieces.size()) return;
    check_gpu(cudaEventRecord(end.done, stream), "record an event");
    all_queued.set_value();
  };
  for (std::size_t i = 0; i < kAtOnce; ++i)
    queue();
  for (std::size_t i = 0; i < pieces.size() && !given_up; ++i, queue()) {
    const Room& room = rooms[i % kAtOnce];
    check_gpu(cudaEventSynchronize(room.done), "copy from the GPU");
    take(i, static_cast<const std::byte*>(room.at));
  }
}

Download::Download() = default;

Download::~Download() {
  if (!state_) return;
  state_->given_up = true;
  if (state_->taken.valid()) state_->taken.wait();
  cudaStreamSynchronize(download_stream());  // what is queued still writes to pinned memory
}

void Download::start(std::vector<Piece> pieces, Take take) {
  finish();
  if (pieces.empty()) return;
  if (!state_) state_ = std::make_unique<State>();
  State& state = *state_;
  check_gpu(cudaEventRecord(state.begin.done, compute_stream()), "record an event");
  std::promise<void> queued;
  state.queued = queued.get_future();
  state.taken =
      std::async(std::launch::async, [&state, pieces = std::move(pieces), take = std::move(take),
                                      given = std::move(queued)]() mutable {
        std::promise<void> all_queued = std::move(given);  // broken at the end, if it is not kept
        state.run(pieces, take, all_queued);
      });
}

void Download::release() {
  if (!state_ || !state_->queued.valid()) return;
  try {
    state_->queued.get();
  } catch (const std::future_error&) {
    finish();
  }
  check_gpu(cudaStreamWaitEvent(compute_stream(), state_->end.done, 0), "wait for copies");
}

void Download::finish() {
  if (state_ && state_->taken.valid()) state_->taken.get();
}

bool Download::done() const {
  if (!state_ || !state_->taken.valid()) return true;
  return state_->taken.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

}  // namespace vfm
