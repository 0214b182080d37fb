// Reads parts of tensors from the files of a set. (io/safetensors.h maps whole sets.)
//
// A reader keeps the headers in memory, and reads only requested data. For a range of columns, it
// reads once for each row. Of objects it fetches what expect() names by few requests. The bytes are
// returned as stored. Thread-safety: const members from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/file.h"
#include "io/lazy_map.h"
#include "io/tensor_set.h"

namespace vfm::io {

/// The tensors of a set. TensorView::data is empty.
class SafetensorsReader final : public TensorSet {
 public:
  /// Returns where the bytes of a file are: its path, or that of a copy.
  using PlaceOf = std::function<std::string(const std::string& path)>;
  /// Opens the files that SafetensorsSet would open. Throws the errors of SafetensorsSet, also for
  /// truncated files.
  SafetensorsReader(const std::string& folder, const std::string& name,
                    const PlaceOf& place_of = {});
  explicit SafetensorsReader(const std::string& file, const PlaceOf& place_of = {});

  void expect(std::span<const Part> parts) const override;

  /// Returns the number of data bytes read so far.
  std::uint64_t bytes_read() const { return bytes_read_; }

 private:
  void read_bytes(const TensorView& tensor, std::uint64_t begin,
                  std::span<std::byte> out) const override;
  std::span<const std::byte> object_bytes(const Part& part) const;

  struct Place {
    std::size_t file;
    std::uint64_t begin;
  };
  /// One of the two is set.
  struct Source {
    File file;
    std::unique_ptr<LazyMap> object;
  };
  std::vector<Source> files_;
  std::vector<Place> places_;
  mutable std::atomic<std::uint64_t> bytes_read_ = 0;
};

}  // namespace vfm::io
