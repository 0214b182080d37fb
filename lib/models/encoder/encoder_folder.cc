// SPDX-License-Identifier: Apache-2.0
#include "models/encoder/encoder_folder.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/json.h"

namespace vfm::models {

ops::ActivationKind gelu_of(const std::string& name, std::string_view what) {
  if (name == "gelu") return ops::ActivationKind::gelu;
  if (name == "gelu_new" || name == "gelu_pytorch_tanh") return ops::ActivationKind::tanh_gelu;
  if (name == "quick_gelu") return ops::ActivationKind::quick_gelu;
  fail_usage(
      "{}: the activation '{}' is not supported: gelu, gelu_new, gelu_pytorch_tanh and quick_gelu "
      "are",
      what, name);
}

int positive_field(const Json& config, const char* name, int fallback, std::string_view what) {
  const std::int64_t value = get_integer(config, name).value_or(fallback);
  if (value < 1 || value > (1 << 24)) fail_usage("{}: \"{}\" is {}", what, name, value);
  return static_cast<int>(value);
}

SelectedSet::SelectedSet(const io::TensorSet& source,
                         const std::function<std::string(const std::string&)>& name)
    : TensorSet(source.path()), source_(source) {
  for (io::TensorView view : source.tensors()) {
    view.name = name(view.name);
    if (!view.name.empty()) add(std::move(view));
  }
}

HeaderSet::HeaderSet(const std::vector<TensorTarget>& targets, DType stored) {
  const auto* const nowhere = reinterpret_cast<const std::byte*>(std::uintptr_t{1} << 60);
  for (const TensorTarget& target : targets) {
    io::TensorView view{target.name, std::string(dtype_name(stored)), target.shape, {}};
    view.data = {nowhere, view.bytes()};
    add(view);
  }
}

Tensor table_rows(const io::TensorView& table, std::span<const std::int32_t> numbers, Device device,
                  const std::string& path) {
  const std::int64_t rows = table.shape.at(0), width = table.shape.at(1);
  const auto count = static_cast<std::int64_t>(numbers.size());
  if (device == Device::meta) return Tensor({count, width}, DType::f32, device);
  const Tensor values({count, width});
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] < 0 || numbers[i] >= rows)
      fail("token {} is not in the vocabulary of {}: do the tokenizer and '{}' belong together?",
           numbers[i], rows, path);
    const Tensor row = read_floats(table, numbers[i] * width, width);
    std::memcpy(values.data<float>() + static_cast<std::int64_t>(i) * width, row.raw(),
                row.bytes());
  }
  return values.to(device);
}

void need_lengths(std::size_t tokens, std::span<const std::int64_t> lengths, const char* model) {
  if (std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0}) !=
          static_cast<std::int64_t>(tokens) ||
      std::any_of(lengths.begin(), lengths.end(), [](auto n) { return n < 1; }))
    fail("{}: {} tokens do not fit {} texts", model, tokens, lengths.size());
}

}  // namespace vfm::models
