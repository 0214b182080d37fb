// SPDX-License-Identifier: Apache-2.0
#include "models/folder/load_tensors.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <string_view>

#include "base/block_format.h"
#include "base/error.h"
#include "ops/matmul/block_rows.h"

namespace vfm::models {
namespace {

constexpr std::size_t kNamed = 8;  // how many of a kind a message names

struct Mismatch {
  std::vector<std::string> missing, unexpected, misshapen, mistyped, uncoded;

  void describe(std::string& text, const char* kind, const std::vector<std::string>& list) const {
    if (list.empty()) return;
    text += fmt::format("{}{} {}: ", text.empty() ? "" : "; ", list.size(), kind);
    for (std::size_t i = 0; i < std::min(list.size(), kNamed); ++i)
      text += (i ? ", " : "") + list[i];
    if (list.size() > kNamed) text += fmt::format(" and {} more", list.size() - kNamed);
  }
  std::string text() const {
    std::string text;
    describe(text, "missing", missing);
    describe(text, "unexpected", unexpected);
    describe(text, "of another shape", misshapen);
    describe(text, "not of a float type", mistyped);
    describe(text, "not U8", uncoded);
    return text;
  }
};

constexpr std::int64_t kRangePiece = std::int64_t{1} << 20;  // elements: what a cache holds

bool is_float(std::string_view dtype) {
  return dtype == "F32" || dtype == "F16" || dtype == "BF16" || block_format(dtype);
}

}  // namespace

DType float_type(std::string_view dtype) {
  return dtype == "F32" ? DType::f32 : dtype == "BF16" ? DType::bf16 : DType::f16;
}

Tensor read_floats(const io::TensorView& from) {
  if (!is_float(from.dtype))
    fail("tensor '{}' is {}, a float type is needed", from.name, from.dtype);
  if (block_format(from.dtype))
    return ops::dequantize_blocks(stored_blocks(from), DType::f32).reshape(from.shape);
  const DType dtype = float_type(from.dtype);
  // The data of a file that another program wrote may begin anywhere.
  if (reinterpret_cast<std::uintptr_t>(from.data.data()) % dtype_size(dtype) == 0)
    return Tensor::borrow(from.data.data(), from.shape, dtype, nullptr).to(DType::f32);
  const Tensor aligned(from.shape, dtype);
  std::memcpy(aligned.raw(), from.data.data(), from.data.size());
  return aligned.to(DType::f32);
}

ops::BlockRows stored_blocks(const io::TensorView& from, Device device) {
  const std::int64_t columns = from.shape.empty() ? 0 : from.shape.back();
  const BlockFormat format = block_format(from.dtype).value();
  const BlockLayout layout = block_layout(format);
  if (columns < 1 || columns % layout.elements != 0)
    fail("tensor '{}' has rows of {} columns, which are not whole blocks", from.name, columns);
  const std::int64_t rows = from.elements() / columns;
  const Shape shape{rows, columns / layout.elements * layout.bytes};
  return {Tensor::borrow(from.data.data(), shape, DType::u8, nullptr, device), format};
}

void check_tensors(const io::TensorSet& set, const std::vector<TensorTarget>& targets) {
  Mismatch wrong;
  std::set<std::string_view> names;
  for (const TensorTarget& target : targets) {
    names.insert(target.name);
    const io::TensorView* found = set.find(target.name);
    if (!found)
      wrong.missing.push_back(fmt::format("'{}'", target.name));
    else if (found->shape != target.shape)
      wrong.misshapen.push_back(fmt::format("'{}' is {}, the model needs {}", target.name,
                                            to_string(found->shape), to_string(target.shape)));
    else if (target.codes && found->dtype != "U8")
      wrong.uncoded.push_back(fmt::format("'{}' is {}", target.name, found->dtype));
    else if (!target.codes && !is_float(found->dtype))
      wrong.mistyped.push_back(fmt::format("'{}' is {}", target.name, found->dtype));
  }
  for (const io::TensorView& tensor : set.tensors())
    if (!names.count(tensor.name)) wrong.unexpected.push_back(fmt::format("'{}'", tensor.name));
  if (const std::string text = wrong.text(); !text.empty())
    fail("the tensors of '{}' are not those of the model: {}", set.path(), text);
}

void check_tensors(const io::TensorSet& set, const nn::ParameterList& parameters) {
  std::vector<TensorTarget> targets;
  for (const nn::Parameter* parameter : parameters)
    targets.push_back({parameter->name, parameter->shape(), {}});
  check_tensors(set, targets);
}

void load_tensors(const io::TensorSet& set, const std::vector<TensorTarget>& targets) {
  check_tensors(set, targets);
  for (const TensorTarget& target : targets)
    target.store(read_floats(*set.find(target.name)));
}

void load_ranges(const io::TensorSet& set, const std::vector<RangeTarget>& targets) {
  std::vector<TensorTarget> wholes;
  std::int64_t most = 0;
  for (const RangeTarget& target : targets) {
    wholes.push_back({target.name, target.range.shape, {}, target.codes});
    most = std::max(most, std::min(kRangePiece, target.elements()));
  }
  check_tensors(set, wholes);
  std::map<DType, Tensor> buffers;
  for (const RangeTarget& target : targets) {
    const DType dtype = target.codes ? DType::u8 : float_type(set.find(target.name)->dtype);
    Tensor& buffer = buffers[dtype];
    if (!buffer.defined()) buffer = Tensor({most}, dtype);
    const std::int64_t count = target.elements();
    for (std::int64_t begin = 0; begin < count; begin += kRangePiece) {
      const Tensor piece = buffer.rows(0, std::min(kRangePiece, count - begin));
      set.read(target.name, target.range, target.first + begin,
               {piece.data<std::byte>(), piece.bytes()});
      target.store(target.codes ? piece : piece.to(DType::f32), begin);
    }
    set.release(*set.find(target.name));
  }
}

io::TensorRange held_range(const nn::Parameter& parameter) {
  const nn::Placement& placement = parameter.placement;
  return {placement.global, placement.offset,
          placement.part.empty() ? parameter.shape() : placement.part};
}

RangeTarget range_target(nn::Parameter& parameter) {
  return {
      parameter.name, held_range(parameter),
      [&parameter](const Tensor& values, std::int64_t begin) { parameter.write(values, begin); },
      parameter.placement.begin, parameter.elements()};
}

TensorTarget value_target(nn::Parameter& parameter) {
  return {parameter.name, parameter.shape(),
          [&parameter](const Tensor& values) { parameter.write(values); }};
}

void load_parameters(const io::TensorSet& set, const nn::ParameterList& parameters) {
  std::vector<TensorTarget> targets;
  for (nn::Parameter* parameter : parameters)
    targets.push_back(value_target(*parameter));
  load_tensors(set, targets);
}

}  // namespace vfm::models
