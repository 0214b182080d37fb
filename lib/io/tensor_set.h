// The interface of named tensors on disk, from which models are loaded. io/safetensors.h,
// io/torch_zip.h and io/gguf.h implement it.
//
// The data are little-endian bytes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/tensor_range.h"

namespace vfm::io {

/// One tensor of a file that is read or written. It does not own `data`.
struct TensorView {
  std::string name;
  std::string dtype;                ///< "F32", "BF16", "I64", ... as in safetensors
  std::vector<std::int64_t> shape;  ///< C order; empty for a scalar
  std::span<const std::byte> data;

  std::int64_t elements() const;
  std::uint64_t bytes() const;  ///< bytes by dtype and shape
};

/// The most dimensions of a tensor. A file with more dimensions is damaged or hostile.
inline constexpr std::size_t kMaxDims = 32;

/// Returns the bytes of one element of a safetensors dtype, or 0 for unknown types and types below
/// a byte.
std::size_t safetensors_item_size(std::string_view dtype);

/// A set of tensors with different names. The views are valid as long as the set, also after a
/// move. Thread-safety: const members from any thread.
class TensorSet {
 public:
  virtual ~TensorSet() = default;

  const std::string& path() const { return path_; }  ///< for messages
  const std::vector<TensorView>& tensors() const { return tensors_; }
  /// Returns the tensor of this name, or null.
  const TensorView* find(std::string_view name) const;
  std::uint64_t bytes() const;  ///< of all tensors

  /// Fills `out` with as many elements of the range as fit, from its element `begin` on, in C
  /// order. The size of `out` must be a whole number of elements, which the range has from `begin`
  /// on. Throws Error if there is no such tensor, its shape is not `range.shape`, range or elements
  /// are outside, or the file cannot be read.
  void read(std::string_view name, const TensorRange& range, std::int64_t begin,
            std::span<std::byte> out) const;

  /// Says that `tensor`, an element of tensors(), is not needed soon, so memory of its mapped file
  /// may be freed.
  virtual void release(const TensorView& /*tensor*/) const {}

 protected:
  /// Fills `out` with bytes of a tensor from `begin` on. By default, copies them from its `data`.
  virtual void read_bytes(const TensorView& tensor, std::uint64_t begin,
                          std::span<std::byte> out) const;

  explicit TensorSet(std::string path = {}) : path_(std::move(path)) {}
  TensorSet(TensorSet&&) = default;
  TensorSet& operator=(TensorSet&&) = default;

  void set_path(std::string path) { path_ = std::move(path); }
  /// Throws Error if the name exists.
  void add(TensorView tensor);

 private:
  std::string path_;
  std::vector<TensorView> tensors_;
  std::map<std::string, std::size_t, std::less<>> by_name_;
};

}  // namespace vfm::io
