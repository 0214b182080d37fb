// SPDX-License-Identifier: Apache-2.0
#include "io/tensor_set.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"

namespace vfm::io {
namespace {

std::int64_t product(std::span<const std::int64_t> sizes) {
  std::int64_t product = 1;
  for (const std::int64_t size : sizes)
    product *= size;
  return product;
}

bool lies_within(const TensorRange& range) {
  const std::size_t dims = range.shape.size();
  bool inside = range.offset.size() == dims && range.length.size() == dims;
  for (std::size_t d = 0; inside && d < dims; ++d)
    inside = range.offset[d] >= 0 && range.length[d] >= 0 &&
             range.length[d] <= range.shape[d] - range.offset[d];
  return inside;
}

/// A range as runs of elements that lie one after the other in the file, all of one length.
struct Runs {
  explicit Runs(const TensorRange& of) : range(of) {
    // From the last dim on, as long as the range has all of it: that is one piece.
    while (dims > 0 && range.length[dims - 1] == range.shape[dims - 1])
      --dims;
    if (dims > 0) --dims;  // the first that is cut: each of its parts is one piece, too
    length = product(std::span(range.length).subspan(dims));
  }
  /// Where, in elements of the whole tensor, run `i` begins.
  std::int64_t begin(std::int64_t i) const {
    std::int64_t at = 0, stride = product(std::span(range.shape).subspan(dims));
    if (dims < range.shape.size())
      at = range.offset[dims] * product(std::span(range.shape).subspan(dims + 1));
    for (std::size_t d = dims; d-- > 0; i /= range.length[d], stride *= range.shape[d])
      at += (range.offset[d] + i % range.length[d]) * stride;
    return at;
  }

  const TensorRange& range;
  std::size_t dims = range.shape.size();  ///< that count runs; those after them are within one
  std::int64_t length = 1;
};

}  // namespace

TensorRange TensorRange::whole(std::vector<std::int64_t> shape) {
  std::vector<std::int64_t> zeros(shape.size(), 0);
  return {shape, std::move(zeros), shape};
}

TensorRange TensorRange::part(std::vector<std::int64_t> shape, std::size_t dim, std::int64_t offset,
                              std::int64_t length) {
  TensorRange range = whole(std::move(shape));
  if (dim >= range.shape.size()) fail("a tensor of {} dims has no dim {}", range.shape.size(), dim);
  range.offset[dim] = offset;
  range.length[dim] = length;
  if (!lies_within(range))
    fail("{} from {} on do not lie within the {} of dim {}", length, offset, range.shape[dim], dim);
  return range;
}

std::int64_t TensorRange::elements() const {
  return product(length);
}

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

void TensorSet::read(std::string_view name, const TensorRange& range, std::int64_t begin,
                     std::span<std::byte> out) const {
  const TensorView* tensor = find(name);
  if (!tensor) fail("'{}' has no tensor '{}'", path(), name);
  if (tensor->shape != range.shape)
    fail("tensor '{}' of '{}' has not the shape that its range is of", name, path());
  if (!lies_within(range)) fail("a range of tensor '{}' does not lie within it", name);
  const auto item = static_cast<std::int64_t>(safetensors_item_size(tensor->dtype));
  const auto size = static_cast<std::int64_t>(out.size());
  if (size % item != 0 || begin < 0 || begin > range.elements() ||
      size / item > range.elements() - begin)
    fail("the range of tensor '{}' has not the elements that are asked for", name);

  const Runs runs(range);
  for (std::int64_t at = begin, end = begin + size / item; at < end;) {
    const std::int64_t inside = at % runs.length;
    const std::int64_t count = std::min(runs.length - inside, end - at);
    const auto bytes = static_cast<std::size_t>(count * item);
    const std::int64_t from = (runs.begin(at / runs.length) + inside) * item;
    read_bytes(*tensor, static_cast<std::uint64_t>(from), out.first(bytes));
    out = out.subspan(bytes);
    at += count;
  }
}

void TensorSet::read_bytes(const TensorView& tensor, std::uint64_t begin,
                           std::span<std::byte> out) const {
  std::ranges::copy(tensor.data.subspan(begin, out.size()), out.begin());
}

void TensorSet::add(TensorView tensor) {
  if (!by_name_.emplace(tensor.name, tensors_.size()).second)
    fail("'{}' has tensor '{}' twice", path_, tensor.name);
  tensors_.push_back(std::move(tensor));
}

}  // namespace vfm::io
