// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tensor/device.h"
#include "tensor/device_cuda.h"
#include "tensor/gpu_graph.h"
#include "tensor/staging_cuda.h"
#include "tensor/upload.h"

namespace vfm {
namespace {

cudaEvent_t make_event() {
  cudaEvent_t event = nullptr;
  check_gpu(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "make an event");
  return event;
}

// A block that nobody uses any more, with the event of its place.
struct Freed {
  std::shared_ptr<void> block;
  cudaEvent_t event = nullptr;
};

struct Uploads {
  std::mutex mutex;
  Staging staging;
  // Where the compute stream was when a block was last freed.
  std::unordered_map<void*, cudaEvent_t> freed;

  std::shared_ptr<void> allocate(std::size_t bytes);
};

// Never destroyed, as the driver may be gone before static objects are.
Uploads& uploads() {
  static Uploads* const instance = new Uploads;
  return *instance;
}

// Gives blocks back once it stands on the compute stream that they were freed. An event of a stream
// that records would become part of the recording, and so would the copies that wait for it: until
// the recording ends the blocks wait here, for the next upload or the next block that is freed.
void give_back(Freed freed) {
  static auto* const mutex = new std::mutex;
  static auto* const waiting = new std::vector<Freed>;
  std::vector<Freed> ready;  // they go when nothing is locked
  std::lock_guard lock(*mutex);
  if (freed.block != nullptr) waiting->push_back(std::move(freed));
  // The thread that records holds the mutex of recordings, and must not ask for it again.
  if (waiting->empty() || GpuGraph::recording()) return;
  const std::unique_lock no_recording(recording_mutex(), std::try_to_lock);
  if (!no_recording) return;
  for (const Freed& one : *waiting)
    cudaEventRecord(one.event, compute_stream());
  ready.swap(*waiting);
}

std::shared_ptr<void> Uploads::allocate(std::size_t bytes) {
  give_back({});
  std::shared_ptr<void> block = upload_allocator().allocate(bytes);
  void* const at = block.get();
  const auto [known, fresh] = freed.try_emplace(at, nullptr);
  if (fresh)
    known->second = make_event();
  else
    check_gpu(cudaStreamWaitEvent(copy_stream(), known->second, 0), "wait for what is computed");
  return {at, [block = std::move(block), event = known->second](void*) {
            give_back({block, event});
          }};
}

}  // namespace

Upload::Upload() {
  use_this_gpu();
  done_ = {make_event(), [](cudaEvent_t event) { cudaEventDestroy(event); }};
}

Tensor Upload::copy(const Tensor& host) {
  use_this_gpu();
  Uploads& all = uploads();
  std::lock_guard lock(all.mutex);
  std::shared_ptr<void> block = all.allocate(host.bytes());
  all.staging.copy_in(block.get(), host.raw(), host.bytes(), copy_stream());
  check_gpu(cudaEventRecord(done_.get(), copy_stream()), "record an event");
  return Tensor::borrow(block.get(), host.shape(), host.dtype(), block, Device::cuda);
}

Tensor upload_room(const Shape& shape, DType dtype) {
  use_this_gpu();
  Uploads& all = uploads();
  const auto bytes = static_cast<std::size_t>(element_count(shape)) * dtype_size(dtype);
  std::lock_guard lock(all.mutex);
  std::shared_ptr<void> block = all.allocate(bytes);
  return Tensor::borrow(block.get(), shape, dtype, block, Device::cuda);
}

void upload_into(const Tensor& room, const Tensor& host) {
  use_this_gpu();
  Uploads& all = uploads();
  std::lock_guard lock(all.mutex);
  all.staging.copy_in(room.raw(), host.raw(), host.bytes(), copy_stream());
}

void finish_uploads() {
  use_this_gpu();
  check_gpu(cudaStreamSynchronize(copy_stream()), "finish copies to the GPU");
}

void await_unnamed_stream() {
  use_this_gpu();
  check_gpu(cudaStreamSynchronize(nullptr), "finish what others do on the GPU");
}

void Upload::await() const {
  check_gpu(cudaStreamWaitEvent(compute_stream(), done_.get(), 0), "wait for copies");
}

}  // namespace vfm
