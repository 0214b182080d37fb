// SPDX-License-Identifier: Apache-2.0
#include "tensor/tensor.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "base/half.h"
#include "tensor/allocator.h"

namespace vfm {

std::size_t dtype_size(DType dtype) {
  switch (dtype) {
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::bf16:
    case DType::f16:
      return 2;
    case DType::i64:
      return 8;
    case DType::u8:
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
    case DType::i32:
      return "I32";
    case DType::i64:
      return "I64";
    case DType::u8:
      return "U8";
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
  if (device != Device::cpu) fail("tensors on a GPU are not available in this build");
  std::shared_ptr<void> block = allocate_cpu(bytes());
  data_ = block.get();
  storage_ = std::move(block);
}

Tensor Tensor::zeros(Shape shape, DType dtype, Device device) {
  Tensor tensor(std::move(shape), dtype, device);
  std::memset(tensor.data_, 0, tensor.bytes());
  return tensor;
}

Tensor Tensor::from(std::span<const float> values, Shape shape) {
  Tensor tensor(std::move(shape));
  if (tensor.elements_ != static_cast<std::int64_t>(values.size()))
    fail("{} values do not fill shape {}", values.size(), to_string(tensor.shape_));
  std::copy(values.begin(), values.end(), tensor.data<float>());
  return tensor;
}

Tensor Tensor::borrow(const void* data, Shape shape, DType dtype,
                      std::shared_ptr<const void> owner) {
  Tensor tensor;
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
  std::memcpy(copy.data_, data_, bytes());
  return copy;
}

Tensor Tensor::to(DType dtype) const {
  if (!defined() || dtype == dtype_) return *this;
  Tensor result(shape_, dtype, device_);
  const auto count = static_cast<std::size_t>(elements_);
  if (dtype_ == DType::f32 && dtype == DType::bf16) {
    convert_f32_to_bf16(data<float>(), result.data<std::uint16_t>(), elements_);
  } else if (dtype_ == DType::bf16 && dtype == DType::f32) {
    convert_bf16_to_f32(data<std::uint16_t>(), result.data<float>(), elements_);
  } else if (dtype_ == DType::f16 && dtype == DType::f32) {
    halves_to_floats({data<std::uint16_t>(), count}, {result.data<float>(), count});
  } else if (dtype_ == DType::f32 && dtype == DType::f16) {
    floats_to_halves({data<float>(), count}, {result.data<std::uint16_t>(), count});
  } else if ((dtype_ == DType::f16 || dtype_ == DType::bf16) &&
             (dtype == DType::f16 || dtype == DType::bf16)) {
    return to(DType::f32).to(dtype);
  } else {
    fail("no conversion from {} to {}", dtype_name(dtype_), dtype_name(dtype));
  }
  return result;
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
