// SPDX-License-Identifier: Apache-2.0
#include "tensor/tensor.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "base/half.h"
#include "tensor/allocator.h"
#include "tensor/device.h"
#include "tensor/kernel_log.h"
#include "tensor/meta.h"

namespace vfm {

std::size_t dtype_size(DType dtype) {
  switch (dtype) {
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::bf16:
    case DType::f16:
    case DType::i16:
      return 2;
    case DType::i64:
      return 8;
    case DType::u8:
    case DType::f8e4m3:
      return 1;
  }
  fail("unknown dtype {}", static_cast<int>(dtype));
}

std::string_view dtype_name(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "F32";
    case DType::bf16:
      return "BF16";
    case DType::f16:
      return "F16";
    case DType::i16:
      return "I16";
    case DType::i32:
      return "I32";
    case DType::i64:
      return "I64";
    case DType::u8:
      return "U8";
    case DType::f8e4m3:
      return "F8_E4M3";
  }
  fail("unknown dtype {}", static_cast<int>(dtype));
}

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i)
    text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

std::int64_t element_count(const Shape& shape) {
  std::int64_t count = 1;
  for (std::int64_t size : shape) {
    if (size < 0) fail("negative size in shape {}", to_string(shape));
    // Bounded so that bytes() cannot overflow either.
    if (size > 0 && count > std::numeric_limits<std::int64_t>::max() / 16 / size)
      fail("shape {} is too large", to_string(shape));
    count *= size;
  }
  return count;
}

Tensor::Tensor(Shape shape, DType dtype, Device device)
    : shape_(std::move(shape)), elements_(element_count(shape_)), dtype_(dtype), device_(device) {
  std::shared_ptr<void> block = device == Device::cpu    ? allocate_cpu(bytes())
                                : device == Device::cuda ? allocate_gpu(bytes())
                                                         : allocate_meta(bytes());
  data_ = block.get();
  storage_ = std::move(block);
}

Tensor Tensor::zeros(Shape shape, DType dtype, Device device) {
  Tensor tensor(std::move(shape), dtype, device);
  zero_bytes(tensor.data_, device, tensor.bytes());
  return tensor;
}

Tensor Tensor::from(std::span<const float> values, Shape shape) {
  Tensor tensor(std::move(shape));
  if (tensor.elements_ != static_cast<std::int64_t>(values.size()))
    fail("{} values do not fill shape {}", values.size(), to_string(tensor.shape_));
  std::copy(values.begin(), values.end(), tensor.data<float>());
  return tensor;
}

Tensor Tensor::name(Shape shape, DType dtype, Device device) {
  const std::size_t bytes = static_cast<std::size_t>(element_count(shape)) * dtype_size(dtype);
  if (bytes == 0) fail("a tensor of shape {} cannot have a name", to_string(shape));
  void* const begin =
      ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (begin == MAP_FAILED) fail_errno(errno, "cannot reserve {} bytes of addresses", bytes);
  const std::shared_ptr<const void> owner(begin, [bytes](void* at) { ::munmap(at, bytes); });
  return borrow(begin, std::move(shape), dtype, owner, device);
}

Tensor Tensor::borrow(const void* data, Shape shape, DType dtype, std::shared_ptr<const void> owner,
                      Device device) {
  Tensor tensor;
  tensor.device_ = device;
  tensor.shape_ = std::move(shape);
  tensor.elements_ = element_count(tensor.shape_);
  tensor.dtype_ = dtype;
  tensor.data_ = const_cast<void*>(data);
  // Without an owner the caller vouches for the memory; storage_ only has to be non-null.
  tensor.storage_ =
      owner ? std::move(owner) : std::shared_ptr<const void>(data, [](const void*) {});
  return tensor;
}

std::int64_t Tensor::size(int dim) const {
  const int index = dim < 0 ? dim + dims() : dim;
  if (index < 0 || index >= dims()) fail("shape {} has no dimension {}", to_string(shape_), dim);
  return shape_[static_cast<std::size_t>(index)];
}

std::span<float> Tensor::floats() const {
  if (!defined() || dtype_ != DType::f32 || device_ != Device::cpu)
    fail("a tensor of {} is not floats on the CPU", defined() ? dtype_name(dtype_) : "nothing");
  return {data<float>(), static_cast<std::size_t>(elements_)};
}

Tensor Tensor::reshape(Shape shape) const {
  if (element_count(shape) != elements_)
    fail("shape {} cannot be reshaped to {}", to_string(shape_), to_string(shape));
  Tensor view = *this;
  view.shape_ = std::move(shape);
  return view;
}

Tensor Tensor::rows(std::int64_t begin, std::int64_t end) const {
  if (dims() < 1 || begin < 0 || begin > end || end > shape_[0])
    fail("shape {} has no rows {} to {}", to_string(shape_), begin, end);
  Tensor view = *this;
  const std::int64_t row = shape_[0] == 0 ? 0 : elements_ / shape_[0];
  view.shape_[0] = end - begin;
  view.elements_ = row * (end - begin);
  view.data_ =
      static_cast<std::byte*>(data_) + static_cast<std::size_t>(row * begin) * dtype_size(dtype_);
  return view;
}

Tensor Tensor::clone() const {
  if (!defined()) return {};
  Tensor copy(shape_, dtype_, device_);
  copy_bytes(copy.data_, device_, data_, device_, bytes());
  return copy;
}

Tensor Tensor::to(Device device) const {
  if (!defined() || device == device_) return *this;
  if (device == Device::cuda)
    if (Tensor constant = recorded_constant(*this); constant.defined()) return constant;
  Tensor copy(shape_, dtype_, device);
  copy_bytes(copy.data_, device, data_, device_, bytes());
  return copy;
}

Tensor Tensor::to(DType dtype) const {
  if (!defined() || dtype == dtype_) return *this;
  Tensor result(shape_, dtype, device_);
  convert(*this, result);
  return result;
}

void copy(const Tensor& from, const Tensor& to) {
  if (from.elements() != to.elements() || from.dtype() != to.dtype())
    fail("a tensor {} {} cannot be copied to {} {}", dtype_name(from.dtype()),
         to_string(from.shape()), dtype_name(to.dtype()), to_string(to.shape()));
  copy_bytes(to.raw(), to.device(), from.raw(), from.device(), from.bytes());
}

void convert(const Tensor& from, const Tensor& to) {
  if (from.elements() != to.elements() || from.device() != to.device())
    fail("a tensor {} on {} cannot be converted into {} on {}", to_string(from.shape()),
         device_name(from.device()), to_string(to.shape()), device_name(to.device()));
  const DType source = from.dtype(), target = to.dtype();
  const auto low = [](DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; };
  const auto count = static_cast<std::size_t>(from.elements());
  if (from.device() == Device::meta && source != target) {
    note_work("convert", {0, static_cast<double>(from.bytes() + to.bytes())});
  } else if (source == target) {
    copy_bytes(to.raw(), to.device(), from.raw(), from.device(), from.bytes());
  } else if (low(source) && low(target)) {
    convert(from.to(DType::f32), to);
  } else if (!(low(source) && target == DType::f32) && !(source == DType::f32 && low(target))) {
    fail("no conversion from {} to {}", dtype_name(source), dtype_name(target));
  } else if (from.device() != Device::cpu) {
    convert_gpu(from, to);
  } else if (const KernelTimer timer("convert"); target == DType::bf16) {
    convert_f32_to_bf16(from.data<float>(), to.data<std::uint16_t>(), from.elements());
  } else if (source == DType::bf16) {
    convert_bf16_to_f32(from.data<std::uint16_t>(), to.data<float>(), from.elements());
  } else if (target == DType::f32) {
    halves_to_floats({from.data<std::uint16_t>(), count}, {to.data<float>(), count});
  } else {
    floats_to_halves({from.data<float>(), count}, {to.data<std::uint16_t>(), count});
  }
}

// Plain integer arithmetic: the compiler vectorises both for every x86-64.
void convert_f32_to_bf16(const float* src, std::uint16_t* dst, std::int64_t count) {
#pragma omp parallel for simd schedule(static) if (count > 32768)
  for (std::int64_t i = 0; i < count; ++i)
    dst[i] = float_to_bfloat16(src[i]);
}

void convert_bf16_to_f32(const std::uint16_t* src, float* dst, std::int64_t count) {
#pragma omp parallel for simd schedule(static) if (count > 32768)
  for (std::int64_t i = 0; i < count; ++i)
    dst[i] = bfloat16_to_float(src[i]);
}

}  // namespace vfm
