// A tensor: dtype, shape, device and shared storage. No arithmetic (that is ops/).
//
// Always contiguous, C order. Copying a Tensor shares its storage; views (reshape, rows) share it
// too. Storage comes from a caching allocator, so a training step allocates nothing after the
// first. Thread-safety: reading from any thread; writing through data() is the caller's business.
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

/// meta: no memory, and nothing is computed (tensor/meta.h).
enum class Device { cpu, cuda, meta };

using Shape = std::vector<std::int64_t>;
std::string to_string(const Shape& shape);  ///< "[2, 3, 64]"
std::int64_t element_count(const Shape& shape);

class Tensor {
 public:
  Tensor() = default;  ///< null: defined() is false
  /// Uninitialised.
  explicit Tensor(Shape shape, DType dtype = DType::f32, Device device = Device::cpu);
  static Tensor zeros(Shape shape, DType dtype = DType::f32, Device device = Device::cpu);
  /// Copies `values`.
  static Tensor from(std::span<const float> values, Shape shape);
  /// Shares memory owned elsewhere (a mapped file); `owner` keeps it alive. Read only by
  /// convention.
  static Tensor borrow(const void* data, Shape shape, DType dtype,
                       std::shared_ptr<const void> owner, Device device = Device::cpu);

  /// No values: addresses that are nothing else's and that nobody may read, as a name for what is
  /// not always in memory.
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
  std::span<float> floats() const;  ///< f32 on the CPU only; throws Error otherwise

  Tensor reshape(Shape shape) const;                        ///< no copy; same element count
  Tensor rows(std::int64_t begin, std::int64_t end) const;  ///< no copy; slice of dim 0
  Tensor clone() const;
  /// A converted copy, or itself. Between f32, bf16 and f16 (ops/matmul/quantize.h has f8e4m3,
  /// which needs a scale).
  Tensor to(DType dtype) const;
  /// A copy on `device`, or itself.
  Tensor to(Device device) const;
  /// Where the data starts; together with bytes() it names the extent (a reshape keeps both).
  const void* id() const { return data_; }
  /// Whether no other Tensor shares the storage, so that overwriting it disturbs nobody.
  bool unique() const { return storage_.use_count() == 1; }

 private:
  Shape shape_;
  std::int64_t elements_ = 0;
  DType dtype_ = DType::f32;
  Device device_ = Device::cpu;
  void* data_ = nullptr;
  std::shared_ptr<const void> storage_;
};

/// The bytes of `from` into `to`, between or within devices; one dtype and number of elements.
void copy(const Tensor& from, const Tensor& to);

/// to[i] = from[i], as Tensor::to(dtype) does, into a tensor that is there; both on one device.
void convert(const Tensor& from, const Tensor& to);

/// dst[i] = src[i], rounded to nearest even on the way to bf16. Uses threads when there is much to
/// do.
void convert_f32_to_bf16(const float* src, std::uint16_t* dst, std::int64_t count);
void convert_bf16_to_f32(const std::uint16_t* src, float* dst, std::int64_t count);

/// Bytes that an allocator hands out now, the most it ever did, and what it keeps for reuse; and
/// the most of what is handed out and what is kept together.
struct MemoryStats {
  std::size_t current = 0, peak = 0, cached = 0, held = 0;
};
MemoryStats cpu_memory();

}  // namespace vfm
