// SPDX-License-Identifier: Apache-2.0
#include "io/safetensors_reader.h"

#include <algorithm>
#include <utility>

#include "base/format.h"
#include "io/remote/address.h"
#include "io/safetensors.h"
#include "io/weight_index.h"

namespace vfm::io {
SafetensorsReader::SafetensorsReader(const std::string& folder, const std::string& name,
                                     const PlaceOf& place_of)
    : SafetensorsReader(SafetensorsSet::file_of(folder, name), place_of) {}

SafetensorsReader::SafetensorsReader(const std::string& file, const PlaceOf& place_of)
    : TensorSet(file) {
  const WeightIndex index = read_weight_index(file);
  for (const std::string& name : index.files) {
    std::string path = join_path(dir_name(file), name);
    if (place_of) path = place_of(path);
    std::unique_ptr<LazyMap> object;
    MappedFile map;  // Only pages of the header are read.
    if (is_remote(path))
      object = map_safetensors(path);
    else
      map = MappedFile(path);
    const std::span<const std::byte> bytes = object ? object->bytes() : map.bytes();
    for (TensorView& tensor : parse_safetensors(bytes, fmt::format("'{}'", path)).tensors) {
      places_.push_back(
          {files_.size(), static_cast<std::uint64_t>(tensor.data.data() - bytes.data())});
      tensor.data = {};
      add(std::move(tensor));
    }
    files_.push_back({object ? File() : File::open_regular(path), std::move(object)});
  }
  check_weight_index(index, *this);
}

void SafetensorsReader::read_bytes(const TensorView& tensor, std::uint64_t begin,
                                   std::span<std::byte> out) const {
  const Place& place = places_[static_cast<std::size_t>(&tensor - tensors().data())];
  if (files_[place.file].object) {
    const std::span<const std::byte> bytes = object_bytes({&tensor, begin, begin + out.size()});
    need_bytes(bytes);
    std::ranges::copy(bytes, out.begin());
  } else {
    files_[place.file].file.pread_exact(out.data(), out.size(), place.begin + begin);
  }
  bytes_read_ += out.size();
}

std::span<const std::byte> SafetensorsReader::object_bytes(const Part& part) const {
  const Place& place = places_[static_cast<std::size_t>(part.tensor - tensors().data())];
  return files_[place.file].object->bytes().subspan(place.begin + part.begin,
                                                    part.end - part.begin);
}

void SafetensorsReader::expect(std::span<const Part> parts) const {
  if (files_.empty() || !files_.front().object) return;
  std::vector<std::span<const std::byte>> bytes;
  for (const Part& part : parts)
    bytes.push_back(object_bytes(part));
  need_bytes(bytes);
}

}  // namespace vfm::io
