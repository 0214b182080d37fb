// A tensor: dtype, shape, device and shared storage. Arithmetic is in ops/.
//
// Tensors are always contiguous, in C order. Copies and views (reshape, rows) of a Tensor share its
// storage. Storage comes from a caching allocator, so a training step requests no memory from the
// system after the first step. Thread-safety: any thread may read; the caller must order writes
// through data().
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tensor/dtype.h"

namespace vfm {

/// `meta` has no memory and computes nothing (tensor/meta.h).
enum class Device { cpu, cuda, meta };

using Shape = std::vector<std::int64_t>;
std::string to_string(const Shape& shape);  ///< "[2, 3, 64]"
std::int64_t element_count(const Shape& shape);

class Tensor {
 public:
  Tensor() = default;  ///< null: defined() is false
  /// The values are uninitialised.
  explicit Tensor(Shape shape, DType dtype = DType::f32, Device device = Device::cpu);
  static Tensor zeros(Shape shape, DType dtype = DType::f32, Device device = Device::cpu);
  /// Copies `values`.
  static Tensor from(std::span<const float> values, Shape shape);
  /// Shares memory owned elsewhere, such as a mapped file; `owner` keeps the memory alive. The
  /// memory is read-only by convention.
  static Tensor borrow(const void* data, Shape shape, DType dtype,
                       std::shared_ptr<const void> owner, Device device = Device::cpu);

  /// A tensor without values, as a name for a tensor that is not always in memory: its addresses
  /// are unique, and nobody may read them.
  static Tensor name(Shape shape, DType dtype, Device device);

  bool defined() const { return storage_ != nullptr; }
  const Shape& shape() const { return shape_; }
  int dims() const { return static_cast<int>(shape_.size()); }
  std::int64_t size(int dim) const;  ///< negative counts from the end
  std::int64_t elements() const { return elements_; }
  std::size_t bytes() const { return static_cast<std::size_t>(elements_) * dtype_size(dtype_); }
  DType dtype() const { return dtype_; }
  Device device() const { return device_; }

  void* raw() const { return data_; }
  template <class T>
  T* data() const {
    return static_cast<T*>(data_);
  }
  std::span<float> floats() const;  ///< only f32 on the CPU; throws Error otherwise

  Tensor reshape(Shape shape) const;                        ///< no copy; same element count
  Tensor rows(std::int64_t begin, std::int64_t end) const;  ///< no copy; slice of dimension 0
  Tensor clone() const;
  /// Returns a converted copy, or this tensor if it has the type already. Converts between f32,
  /// bf16 and f16. For f8e4m3, which needs a scale, see ops/matmul/quantize.h.
  Tensor to(DType dtype) const;
  /// Returns a copy on `device`, or this tensor if it is there already.
  Tensor to(Device device) const;
  /// The address of the first byte. Together with bytes() it identifies the extent; a reshape keeps
  /// both.
  const void* id() const { return data_; }
  /// True if no other Tensor shares the storage, so that it may be overwritten.
  bool unique() const { return storage_.use_count() == 1; }

 private:
  Shape shape_;
  std::int64_t elements_ = 0;
  DType dtype_ = DType::f32;
  Device device_ = Device::cpu;
  void* data_ = nullptr;
  std::shared_ptr<const void> storage_;
};

/// Copies the bytes of `from` into `to`, between or within devices. Both have the same dtype and
/// number of elements.
void copy(const Tensor& from, const Tensor& to);

/// Converts like Tensor::to(dtype) into an existing tensor: to[i] = from[i]. Both are on one
/// device.
void convert(const Tensor& from, const Tensor& to);

/// dst[i] = src[i]; values are rounded to nearest even on the way to bf16. Large arrays are
/// converted by several threads.
void convert_f32_to_bf16(const float* src, std::uint16_t* dst, std::int64_t count);
void convert_bf16_to_f32(const std::uint16_t* src, float* dst, std::int64_t count);

/// Bytes of an allocator: `current` in use now, `peak` the most ever in use, `cached` kept for
/// reuse, `held` the most ever in use and kept together.
struct MemoryStats {
  std::size_t current = 0, peak = 0, cached = 0, held = 0;
};
MemoryStats cpu_memory();

}  // namespace vfm
