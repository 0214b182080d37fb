// The interface of named tensors on disk, from which models are loaded. Implementations are in
// io/safetensors.h, io/torch_zip.h and io/gguf.h. The data are little-endian bytes.
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

/// One tensor of a file that is read or written. Does not own `data`.
struct TensorView {
  std::string name;
  std::string dtype;                ///< Type as in safetensors, such as "F32", "BF16", "I64".
  std::vector<std::int64_t> shape;  ///< Dimensions in C order. Empty for a scalar.
  std::span<const std::byte> data;
  /// Factors of the values: none, one, or one for each row (the first dimension). Not owned. Only
  /// 8-bit floats have some (models/folder/scaled_weights.h).
  std::span<const float> scales = {};

  std::int64_t elements() const;
  std::uint64_t bytes() const;  ///< of the data as they are stored
};

/// The highest number of dimensions of a tensor.
inline constexpr std::size_t kMaxDims = 32;

/// Returns the size in bytes of one element of a safetensors dtype. Returns 0 for unknown types,
/// and for types smaller than a byte.
std::size_t safetensors_item_size(std::string_view dtype);

/// A set of tensors with different names. The views of its tensors are valid during the life of the
/// set, also after the set is moved. Thread-safety: const members from any thread.
class TensorSet {
 public:
  virtual ~TensorSet() = default;

  const std::string& path() const { return path_; }  ///< Path for messages.
  const std::vector<TensorView>& tensors() const { return tensors_; }
  /// Returns the tensor with this name, or null.
  const TensorView* find(std::string_view name) const;
  std::uint64_t bytes() const;

  /// Fills `out` with the elements of `range` in C order, beginning at the range's element `begin`.
  /// `out` must have space for a whole number of elements, and all of these must lie in the range.
  /// Throws Error if the tensor does not exist, if its shape is not `range.shape`, if the range or
  /// the elements are outside the tensor, or if the file cannot be read.
  void read(std::string_view name, const TensorRange& range, std::int64_t begin,
            std::span<std::byte> out) const;

  /// The bytes [begin, end) of a tensor of tensors().
  struct Part {
    const TensorView* tensor;
    std::uint64_t begin, end;
  };
  /// Says which bytes are read next, so that a set in a bucket fetches them together. Throws Error.
  virtual void expect(std::span<const Part> parts) const;

  /// May free the memory of a mapped `tensor` until the next read. `tensor` must be an element of
  /// tensors().
  virtual void release(const TensorView& /*tensor*/) const {}

 protected:
  /// Fills `out` with bytes of a tensor from byte `begin` on. The default implementation copies
  /// bytes of the tensor's `data`.
  virtual void read_bytes(const TensorView& tensor, std::uint64_t begin,
                          std::span<std::byte> out) const;

  explicit TensorSet(std::string path = {}) : path_(std::move(path)) {}
  TensorSet(TensorSet&&) = default;
  TensorSet& operator=(TensorSet&&) = default;

  void set_path(std::string path) { path_ = std::move(path); }
  /// Throws Error if the set already has a tensor with the name of `tensor`.
  void add(TensorView tensor);

 private:
  std::string path_;
  std::vector<TensorView> tensors_;
  std::map<std::string, std::size_t, std::less<>> by_name_;
};

}  // namespace vfm::io
