// Parts of tensors, read from the files of a set where they lie.
//
// A reader keeps the headers; of the data it reads what is asked for, with pread, so that a process
// which needs a slice of each tensor never touches the rest. Of some columns each row is a read of
// its own: 1.4 us for a KiB of a file in the page cache, no more than what lies between costs.
// io/safetensors.h maps whole sets.
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

/// The tensors of a set; their `data` are empty.
class SafetensorsReader final : public TensorSet {
 public:
  /// Opens what SafetensorsSet opens, and throws as that does: also for files that are cut off.
  SafetensorsReader(const std::string& folder, const std::string& name);
  explicit SafetensorsReader(const std::string& file);

  /// How many bytes of data were read so far.
  std::uint64_t bytes_read() const { return bytes_read_; }

 private:
  void read_bytes(const TensorView& tensor, std::uint64_t begin,
                  std::span<std::byte> out) const override;

  struct Place {
    std::size_t file;
    std::uint64_t begin;  // in that file
  };
  std::vector<File> files_;
  std::vector<Place> places_;  // of tensors()
  mutable std::atomic<std::uint64_t> bytes_read_ = 0;
};

}  // namespace vfm::io
