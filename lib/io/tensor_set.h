// Named tensors on disk, in any format: io/safetensors.h and io/torch_zip.h provide them, and
// models are loaded from them.
//
// The data are bytes, little endian; their meaning is not known here.
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

/// One tensor of a file that was read, or is to be written. It does not own `data`.
struct TensorView {
  std::string name;
  std::string dtype;                ///< "F32", "BF16", "I64", ... as in safetensors
  std::vector<std::int64_t> shape;  ///< C order; empty for a scalar
  std::span<const std::byte> data;

  std::int64_t elements() const;
  std::uint64_t bytes() const;  ///< by dtype and shape
};

/// More dimensions in a file mean damage or an attack.
inline constexpr std::size_t kMaxDims = 32;

/// Bytes of one element of a safetensors dtype; 0 if unknown (also for the sub-byte types).
std::size_t safetensors_item_size(std::string_view dtype);

/// A set of tensors with different names. The views are valid as long as the set, also after it was
/// moved. Thread-safety: const members from any thread.
class TensorSet {
 public:
  virtual ~TensorSet() = default;

  const std::string& path() const { return path_; }  ///< for messages
  const std::vector<TensorView>& tensors() const { return tensors_; }
  /// The tensor of that name, or null.
  const TensorView* find(std::string_view name) const;
  std::uint64_t bytes() const;  ///< of all tensors

  /// Fills `out` with elements of the range, from `begin` on in its own C order: as many as fit,
  /// which must be whole ones of the range. Throws Error: no such tensor, or one of another shape
  /// than the range says, a range or elements outside it, a file that cannot be read.
  void read(std::string_view name, const TensorRange& range, std::int64_t begin,
            std::span<std::byte> out) const;

  /// Says that the tensor, one of tensors(), is not needed soon, so memory of its mapped file may
  /// be freed.
  virtual void release(const TensorView& /*tensor*/) const {}

 protected:
  /// The bytes of a tensor from `begin` on: here those of its `data`.
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
