// SPDX-License-Identifier: Apache-2.0
#include "io/tensor_set.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "io/lazy_map.h"

namespace vfm::io {
std::int64_t TensorView::elements() const {
  std::int64_t count = 1;
  for (const std::int64_t dim : shape)
    count *= dim;
  return count;
}

std::uint64_t TensorView::bytes() const {
  const std::size_t item = safetensors_item_size(dtype);
  return item ? static_cast<std::uint64_t>(elements()) * item : data.size();
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

void TensorSet::read(std::string_view name, const TensorRange& range, std::int64_t begin,
                     std::span<std::byte> out) const {
  const TensorView* tensor = find(name);
  if (!tensor) fail("'{}' has no tensor '{}'", path(), name);
  if (tensor->shape != range.shape)
    fail("tensor '{}' of '{}' has not the shape that its range is of", name, path());
  if (!range.lies_within()) fail("a range of tensor '{}' does not lie within it", name);
  const auto item = static_cast<std::int64_t>(safetensors_item_size(tensor->dtype));
  if (item == 0) fail("ranges of tensor '{}', which is {}, cannot be read", name, tensor->dtype);
  const auto size = static_cast<std::int64_t>(out.size());
  if (size % item != 0 || begin < 0 || begin > range.elements() ||
      size / item > range.elements() - begin)
    fail("the range of tensor '{}' has not the elements that are asked for", name);

  if (has_lazy_maps()) {  // all runs at once
    std::vector<Part> parts;
    RangeRuns(range).for_each(
        begin, begin + size / item, [&](std::int64_t at, std::int64_t, std::int64_t count) {
          parts.push_back({tensor, static_cast<std::uint64_t>(at * item),
                           static_cast<std::uint64_t>((at + count) * item)});
        });
    expect(parts);
  }
  RangeRuns(range).for_each(
      begin, begin + size / item, [&](std::int64_t at, std::int64_t, std::int64_t count) {
        const auto bytes = static_cast<std::size_t>(count * item);
        read_bytes(*tensor, static_cast<std::uint64_t>(at * item), out.first(bytes));
        out = out.subspan(bytes);
      });
}

void TensorSet::expect(std::span<const Part> parts) const {
  if (!has_lazy_maps()) return;
  std::vector<std::span<const std::byte>> bytes;
  for (const Part& part : parts)
    bytes.push_back(part.tensor->data.subspan(part.begin, part.end - part.begin));
  need_bytes(bytes);
}

void TensorSet::read_bytes(const TensorView& tensor, std::uint64_t begin,
                           std::span<std::byte> out) const {
  need_bytes(tensor.data.subspan(begin, out.size()));
  std::ranges::copy(tensor.data.subspan(begin, out.size()), out.begin());
}

void TensorSet::add(TensorView tensor) {
  if (!by_name_.emplace(tensor.name, tensors_.size()).second)
    fail("'{}' has tensor '{}' twice", path_, tensor.name);
  tensors_.push_back(std::move(tensor));
}

}  // namespace vfm::io
