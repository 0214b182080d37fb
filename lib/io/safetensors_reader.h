// Parts of tensors, read from the files of a set where they lie.
//
// A reader keeps the headers; of the data it reads what is asked for, with pread, so that a process
// which needs a slice of each tensor never touches the rest. io/safetensors.h maps whole sets.
// Not here: what the numbers are; the bytes come as they are stored.
// Thread-safety: const members from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/file.h"
#include "io/tensor_set.h"

namespace vfm::io {

/// A box of a tensor: in each dim the indices [offset, offset + length).
struct TensorRange {
  std::vector<std::int64_t> shape;           ///< of the whole tensor
  std::vector<std::int64_t> offset, length;  ///< by dim

  static TensorRange whole(std::vector<std::int64_t> shape);
  /// Of one dim a part, of the others all. Throws Error unless it lies within the tensor.
  static TensorRange part(std::vector<std::int64_t> shape, std::size_t dim, std::int64_t offset,
                          std::int64_t length);
  std::int64_t elements() const;  ///< in the box
};

/// The tensors of a set; their `data` are empty.
class SafetensorsReader final : public TensorSet {
 public:
  /// Opens what SafetensorsSet opens, and throws as that does: also for files that are cut off.
  SafetensorsReader(const std::string& folder, const std::string& name);
  explicit SafetensorsReader(const std::string& file);

  /// Fills `out` with elements of the range, from `begin` on in its own C order: as many as fit,
  /// which must be whole ones of the range. Throws Error: no such tensor, or one of another shape
  /// than the range says, a range or elements outside it, a file that cannot be read.
  void read(std::string_view name, const TensorRange& range, std::int64_t begin,
            std::span<std::byte> out) const;

  /// How many bytes of data were read so far.
  std::uint64_t bytes_read() const { return bytes_read_; }

 private:
  struct Place {
    std::size_t file;
    std::uint64_t begin;  // in that file
  };
  std::vector<File> files_;
  std::vector<Place> places_;  // of tensors()
  mutable std::atomic<std::uint64_t> bytes_read_ = 0;
};

}  // namespace vfm::io
