// SPDX-License-Identifier: Apache-2.0
#include "io/tensor_set.h"

#include <array>
#include <utility>

#include "base/error.h"

namespace vfm::io {

std::int64_t TensorView::elements() const {
  std::int64_t count = 1;
  for (const std::int64_t dim : shape)
    count *= dim;
  return count;
}

std::uint64_t TensorView::bytes() const {
  return static_cast<std::uint64_t>(elements()) * safetensors_item_size(dtype);
}

std::size_t safetensors_item_size(std::string_view dtype) {
  static constexpr std::array<std::pair<std::string_view, std::size_t>, 15> known = {{
      {"F64", 8},
      {"I64", 8},
      {"U64", 8},
      {"F32", 4},
      {"I32", 4},
      {"U32", 4},
      {"F16", 2},
      {"BF16", 2},
      {"I16", 2},
      {"U16", 2},
      {"I8", 1},
      {"U8", 1},
      {"BOOL", 1},
      {"F8_E4M3", 1},
      {"F8_E5M2", 1},
  }};
  for (const auto& [name, size] : known)
    if (name == dtype) return size;
  return 0;
}

const TensorView* TensorSet::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &tensors_[found->second];
}

std::uint64_t TensorSet::bytes() const {
  std::uint64_t bytes = 0;
  for (const TensorView& tensor : tensors_)
    bytes += tensor.bytes();
  return bytes;
}

void TensorSet::add(TensorView tensor) {
  if (!by_name_.emplace(tensor.name, tensors_.size()).second)
    fail("'{}' has tensor '{}' twice", path_, tensor.name);
  tensors_.push_back(std::move(tensor));
}

}  // namespace vfm::io
