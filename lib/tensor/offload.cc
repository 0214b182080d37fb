// SPDX-License-Identifier: Apache-2.0
#include "tensor/offload.h"

#include <utility>

#include "tensor/meta.h"

namespace vfm {
namespace {

Tensor place_of(const Tensor& tensor) {
  if (tensor.device() == Device::cpu) return Tensor(tensor.shape(), tensor.dtype());
  const bool meta = tensor.device() == Device::meta;
  const std::shared_ptr<void> block =
      meta ? allocate_meta_pinned(tensor.bytes()) : allocate_pinned(tensor.bytes());
  return Tensor::borrow(block.get(), tensor.shape(), tensor.dtype(), block,
                        meta ? Device::meta : Device::cpu);
}

}  // namespace

Offload::Offload(Tensor tensor)
    : device_(tensor.device()), place_(place_of(tensor)), tensor_(std::move(tensor)) {
  begin(tensor_, place_);
}

Offload::~Offload() {
  try {
    await();
  } catch (const std::exception&) {  // the GPU is lost, and says so where it is asked next
  }
}

void Offload::begin(const Tensor& from, const Tensor& to) {
  if (device_ == Device::cuda)
    done_ = begin_offload_copy(to.raw(), from.raw(), from.bytes(), to.device() == Device::cpu);
  else if (device_ == Device::meta)
    counted_ = begin_copy_on_meta(static_cast<double>(from.bytes()));
  else
    copy(from, to);
  under_way_ = true;
}

void Offload::await() {
  if (!std::exchange(under_way_, false)) return;
  if (done_ != nullptr)
    await_offload_copy(done_.get());
  else if (device_ == Device::meta)
    end_copy_on_meta(counted_);
}

Tensor Offload::release() {
  await();
  return std::exchange(tensor_, Tensor());
}

void Offload::fetch() {
  if (tensor_.defined()) return;
  tensor_ = Tensor(place_.shape(), place_.dtype(), device_);
  begin(place_, tensor_);
}

Tensor Offload::get() {
  fetch();
  return release();
}

}  // namespace vfm
