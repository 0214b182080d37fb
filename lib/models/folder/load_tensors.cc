// SPDX-License-Identifier: Apache-2.0
#include "models/folder/load_tensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <map>
#include <set>
#include <string_view>

#include "base/block_format.h"
#include "base/error.h"
#include "base/float8.h"
#include "io/lazy_map.h"
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

bool is_eight_bits(std::string_view dtype) {
  return dtype == "F8_E4M3" || dtype == "F8_E5M2";
}

bool is_float(std::string_view dtype) {
  return dtype == "F32" || dtype == "F16" || dtype == "BF16" || is_eight_bits(dtype) ||
         block_format(dtype);
}

/// The numbers of all codes. E5M2 is the upper byte of an f16.
const std::array<float, 256>& numbers_of(std::string_view dtype) {
  static const auto make = [](auto number) {
    std::array<float, 256> all{};
    for (int code = 0; code < 256; ++code)
      all[static_cast<std::size_t>(code)] = number(static_cast<std::uint8_t>(code));
    return all;
  };
  static const std::array<float, 256> e4m3 = make(f8e4m3_to_float), e5m2 = make(f8e5m2_to_float);
  return dtype == "F8_E4M3" ? e4m3 : e5m2;
}

Tensor read_eight_bits(const io::TensorView& from, std::int64_t first, std::int64_t count) {
  io::need_bytes(
      from.data.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count)));
  const std::array<float, 256>& numbers = numbers_of(from.dtype);
  const auto scales = static_cast<std::int64_t>(from.scales.size());
  if (scales > 1 && (from.shape.empty() || scales != from.shape[0]))
    fail("tensor '{}' has {} factors of other rows", from.name, scales);
  const std::int64_t each = from.elements() / std::max<std::int64_t>(scales, 1);
  const std::byte* const codes = from.data.data() + first;
  const Tensor values({count});
  float* const to = values.data<float>();
  for (std::int64_t i = 0; i < count;) {
    const std::int64_t of = (first + i) / each, end = std::min(count, (of + 1) * each - first);
    const float scale = scales == 0 ? 1.0F : from.scales[static_cast<std::size_t>(of)];
    for (; i < end; ++i)
      to[i] = numbers[std::to_integer<std::size_t>(codes[i])] * scale;
  }
  return values;
}

Tensor read_blocks(const io::TensorView& from, std::int64_t first, std::int64_t count) {
  const BlockFormat format = block_format(from.dtype).value();
  const BlockLayout layout = block_layout(format);
  const std::int64_t begin = first / layout.elements,
                     end = (first + count + layout.elements - 1) / layout.elements;
  io::need_bytes(from.data.subspan(static_cast<std::size_t>(begin * layout.bytes),
                                   static_cast<std::size_t>((end - begin) * layout.bytes)));
  const Tensor bytes = Tensor::borrow(from.data.data() + begin * layout.bytes,
                                      {end - begin, layout.bytes}, DType::u8, nullptr);
  const std::int64_t skipped = first - begin * layout.elements;
  return ops::dequantize_blocks({bytes, format}, DType::f32)
      .reshape({(end - begin) * layout.elements})
      .rows(skipped, skipped + count);
}

}  // namespace

bool is_coded(const io::TensorView& from) {
  return is_eight_bits(from.dtype) || block_format(from.dtype);
}

DType float_type(std::string_view dtype) {
  return dtype == "F32" ? DType::f32 : dtype == "BF16" ? DType::bf16 : DType::f16;
}

Tensor read_floats(const io::TensorView& from) {
  if (!is_float(from.dtype))
    fail("tensor '{}' is {}, a float type is needed", from.name, from.dtype);
  if (is_coded(from)) return read_floats(from, 0, from.elements()).reshape(from.shape);
  io::need_bytes(from.data);
  const DType dtype = float_type(from.dtype);
  // The data of a file that another program wrote may begin anywhere.
  if (reinterpret_cast<std::uintptr_t>(from.data.data()) % dtype_size(dtype) == 0)
    return Tensor::borrow(from.data.data(), from.shape, dtype, nullptr).to(DType::f32);
  const Tensor aligned(from.shape, dtype);
  std::memcpy(aligned.raw(), from.data.data(), from.data.size());
  return aligned.to(DType::f32);
}

Tensor read_floats(const io::TensorView& from, std::int64_t first, std::int64_t count) {
  if (count == 0) return Tensor({0});
  if (block_format(from.dtype)) return read_blocks(from, first, count);
  if (is_eight_bits(from.dtype)) return read_eight_bits(from, first, count);
  io::TensorView part = from;
  const std::size_t item = io::safetensors_item_size(from.dtype);
  part.shape = {count};
  part.data = from.data.subspan(static_cast<std::size_t>(first) * item,
                                static_cast<std::size_t>(count) * item);
  return read_floats(part);
}

ops::BlockRows stored_blocks(const io::TensorView& from, Device device) {
  const std::int64_t columns = from.shape.empty() ? 0 : from.shape.back();
  const BlockFormat format = block_format(from.dtype).value();
  const BlockLayout layout = block_layout(format);
  if (columns < 1 || columns % layout.elements != 0)
    fail("tensor '{}' has rows of {} columns, which are not whole blocks", from.name, columns);
  const std::int64_t rows = from.elements() / columns;
  const Shape shape{rows, columns / layout.elements * layout.bytes};
  if (device != Device::meta) io::need_bytes(from.data);
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

std::uint64_t loading_bytes(const io::TensorSet& set) {
  std::uint64_t most = 0;
  for (const io::TensorView& tensor : set.tensors()) {
    const std::uint64_t numbers = static_cast<std::uint64_t>(tensor.elements()) * sizeof(float);
    most = std::max(most, tensor.bytes() + (tensor.dtype == "F32" ? 0 : numbers));
  }
  return most;
}

namespace {

/// Says what of a set is read next, some targets ahead: of an object they are fetched together.
class Expected {
 public:
  /// Adds the parts that are read for target `i`.
  using PartsOf = std::function<void(std::size_t i, std::vector<io::TensorSet::Part>& parts)>;
  Expected(const io::TensorSet& set, std::size_t targets, PartsOf parts_of)
      : set_(set), targets_(targets), parts_of_(std::move(parts_of)) {}

  /// The next target is read.
  void next() {
    constexpr std::uint64_t kMost = std::uint64_t{64} << 20;
    if (at_++ < told_ || !io::has_lazy_maps()) return;
    std::vector<io::TensorSet::Part> parts;
    told_ = at_ - 1;
    for (std::uint64_t bytes = 0; told_ < targets_ && bytes < kMost; ++told_) {
      const std::size_t before = parts.size();
      parts_of_(told_, parts);
      for (std::size_t i = before; i < parts.size(); ++i)
        bytes += parts[i].end - parts[i].begin;
    }
    set_.expect(parts);
  }

 private:
  const io::TensorSet& set_;
  const std::size_t targets_;
  const PartsOf parts_of_;
  std::size_t at_ = 0, told_ = 0;
};

}  // namespace

void load_tensors(const io::TensorSet& set, const std::vector<TensorTarget>& targets) {
  check_tensors(set, targets);
  Expected expected(set, targets.size(),
                    [&](std::size_t i, std::vector<io::TensorSet::Part>& parts) {
                      const io::TensorView& from = *set.find(targets[i].name);
                      parts.push_back({&from, 0, from.data.size()});
                    });
  for (const TensorTarget& target : targets) {
    expected.next();
    const io::TensorView& from = *set.find(target.name);
    target.store(read_floats(from));
    set.release(from);
  }
}

namespace {

/// What is read for a target; of codes the whole tensor.
void add_parts(const RangeTarget& target, const io::TensorView& from,
               std::vector<io::TensorSet::Part>& parts) {
  const std::uint64_t item = io::safetensors_item_size(from.dtype);
  if (item == 0) {
    parts.push_back({&from, 0, from.data.size()});
    return;
  }
  io::RangeRuns(target.range)
      .for_each(target.first, target.first + target.elements(),
                [&](std::int64_t at, std::int64_t, std::int64_t count) {
                  const std::uint64_t begin = static_cast<std::uint64_t>(at) * item;
                  parts.push_back({&from, begin, begin + static_cast<std::uint64_t>(count) * item});
                });
}

/// Elements [begin, begin + size of `into`) of the range.
void read_coded(const io::TensorView& from, const io::TensorRange& range, std::int64_t begin,
                const Tensor& into) {
  io::RangeRuns(range).for_each(
      begin, begin + into.elements(), [&](std::int64_t at, std::int64_t in, std::int64_t count) {
        const Tensor values = read_floats(from, at, count);
        std::memcpy(into.data<float>() + (in - begin), values.raw(), values.bytes());
      });
}

}  // namespace

void load_ranges(const io::TensorSet& set, const std::vector<RangeTarget>& targets) {
  std::vector<TensorTarget> wholes;
  std::int64_t most = 0;
  for (const RangeTarget& target : targets) {
    wholes.push_back({target.name, target.range.shape, {}, target.codes});
    most = std::max(most, std::min(kRangePiece, target.elements()));
  }
  check_tensors(set, wholes);
  std::map<DType, Tensor> buffers;
  Expected expected(set, targets.size(),
                    [&](std::size_t i, std::vector<io::TensorSet::Part>& parts) {
                      add_parts(targets[i], *set.find(targets[i].name), parts);
                    });
  for (const RangeTarget& target : targets) {
    expected.next();
    const io::TensorView& from = *set.find(target.name);
    const DType dtype = target.codes     ? DType::u8
                        : is_coded(from) ? DType::f32
                                         : float_type(from.dtype);
    Tensor& buffer = buffers[dtype];
    if (!buffer.defined()) buffer = Tensor({most}, dtype);
    const std::int64_t count = target.elements();
    for (std::int64_t begin = 0; begin < count; begin += kRangePiece) {
      const Tensor piece = buffer.rows(0, std::min(kRangePiece, count - begin));
      if (is_coded(from))
        read_coded(from, target.range, target.first + begin, piece);
      else
        set.read(target.name, target.range, target.first + begin,
                 {piece.data<std::byte>(), piece.bytes()});
      target.store(target.codes ? piece : piece.to(DType::f32), begin);
    }
    set.release(from);
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
