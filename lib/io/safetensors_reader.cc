// SPDX-License-Identifier: Apache-2.0
#include "io/safetensors_reader.h"

#include <utility>

#include "base/format.h"
#include "io/safetensors.h"
#include "io/weight_index.h"

namespace vfm::io {
SafetensorsReader::SafetensorsReader(const std::string& folder, const std::string& name)
    : SafetensorsReader(SafetensorsSet::file_of(folder, name)) {}

SafetensorsReader::SafetensorsReader(const std::string& file) : TensorSet(file) {
  const WeightIndex index = read_weight_index(file);
  for (const std::string& name : index.files) {
    const std::string path = join_path(dir_name(file), name);
    const MappedFile map(path);  // Only pages of the header are read.
    for (TensorView& tensor : parse_safetensors(map.bytes(), fmt::format("'{}'", path)).tensors) {
      places_.push_back(
          {files_.size(), static_cast<std::uint64_t>(tensor.data.data() - map.bytes().data())});
      tensor.data = {};
      add(std::move(tensor));
    }
    files_.push_back(File::open_regular(path));
  }
  check_weight_index(index, *this);
}

void SafetensorsReader::read_bytes(const TensorView& tensor, std::uint64_t begin,
                                   std::span<std::byte> out) const {
  const Place& place = places_[static_cast<std::size_t>(&tensor - tensors().data())];
  files_[place.file].pread_exact(out.data(), out.size(), place.begin + begin);
  bytes_read_ += out.size();
}

}  // namespace vfm::io
