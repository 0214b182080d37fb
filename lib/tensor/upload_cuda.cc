// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include <mutex>
#include <unordered_map>

#include "tensor/device.h"
#include "tensor/device_cuda.h"
#include "tensor/staging_cuda.h"
#include "tensor/upload.h"

namespace vfm {
namespace {

cudaEvent_t make_event() {
  cudaEvent_t event = nullptr;
  check_gpu(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "make an event");
  return event;
}

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

std::shared_ptr<void> Uploads::allocate(std::size_t bytes) {
  std::shared_ptr<void> block = upload_allocator().allocate(bytes);
  void* const at = block.get();
  const auto [known, fresh] = freed.try_emplace(at, nullptr);
  if (fresh)
    known->second = make_event();
  else
    check_gpu(cudaStreamWaitEvent(copy_stream(), known->second, 0), "wait for what is computed");
  return {at, [block = std::move(block), event = known->second](void*) {
            cudaEventRecord(event, compute_stream());
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

void Upload::await() const {
  check_gpu(cudaStreamWaitEvent(compute_stream(), done_.get(), 0), "wait for copies");
}

}  // namespace vfm
