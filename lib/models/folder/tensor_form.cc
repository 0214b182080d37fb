// SPDX-License-Identifier: Apache-2.0
#include "models/folder/tensor_form.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "io/lazy_map.h"
#include "models/folder/load_tensors.h"
#include "tensor/meta.h"

namespace vfm::models {
namespace {

using ShapesByName = std::map<std::string, Shape, std::less<>>;

/// Those of a network of `config`.
ShapesByName parameter_shapes(const NetworkConfig& config) {
  ShapesByName shapes;
  const MetaAccount apart(Device::cpu);  // what it would take counts nowhere
  const auto network = make_network(config, 0, DType::bf16, Device::meta, false);
  for (const nn::Parameter* parameter : network->parameters())
    shapes[parameter->name] = parameter->shape();
  return shapes;
}

bool contains(std::string_view name, std::string_view part) {
  return name.find(part) != std::string_view::npos;
}

std::string replaced(std::string name, std::string_view from, std::string_view to) {
  return name.replace(name.find(from), from.size(), to);
}

bool is_transposed(const TensorForm& form, std::string_view name) {
  return std::ranges::any_of(form.transposed,
                             [&](std::string_view part) { return contains(name, part); });
}

const StackedRows* stack_there(const TensorForm& form, std::string_view name) {
  for (const StackedRows& stack : form.stacks)
    if (contains(name, stack.there)) return &stack;
  return nullptr;
}

/// The rows of a stack; nothing if the stack is not that of the network.
std::optional<std::vector<io::TensorView>> split(const StackedRows& stack,
                                                 const io::TensorView& tensor,
                                                 const ShapesByName& shapes) {
  std::vector<io::TensorView> parts;
  std::int64_t rows = 0;
  for (const std::string_view here : stack.here) {
    if (here.empty()) continue;
    io::TensorView part = tensor;
    part.name = replaced(tensor.name, stack.there, here);
    const auto found = shapes.find(part.name);
    if (found == shapes.end() || found->second.size() != tensor.shape.size()) return {};
    part.shape[0] = found->second[0];
    rows += part.shape[0];
    parts.push_back(std::move(part));
  }
  if (tensor.shape.empty() || rows != tensor.shape[0]) return {};
  const std::size_t row = tensor.data.size() / static_cast<std::size_t>(rows);
  std::size_t begin = 0;
  for (io::TensorView& part : parts) {
    const std::size_t bytes = static_cast<std::size_t>(part.shape[0]) * row;
    part.data = tensor.data.subspan(begin, bytes);
    if (tensor.scales.size() > 1)
      part.scales = tensor.scales.subspan(begin / row, static_cast<std::size_t>(part.shape[0]));
    begin += bytes;
  }
  return parts;
}

/// Elements [first, first + count) of the transposed matrix.
std::vector<std::byte> transposed(const io::TensorView& tensor, std::int64_t first,
                                  std::int64_t count) {
  const std::size_t item = io::safetensors_item_size(tensor.dtype);
  if (item == 0 || tensor.scales.size() > 1)
    fail("tensor '{}' of type {} cannot be transposed", tensor.name, tensor.dtype);
  const auto rows = static_cast<std::size_t>(tensor.shape[0]),
             columns = static_cast<std::size_t>(tensor.shape[1]);
  std::vector<std::byte> copy(static_cast<std::size_t>(count) * item);
  const auto begin = static_cast<std::size_t>(first);
  io::need_bytes(tensor.data);
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    const std::size_t r = (begin + i) % rows, c = (begin + i) / rows;
    std::memcpy(&copy[i * item], &tensor.data[(r * columns + c) * item], item);
  }
  return copy;
}

}  // namespace

TensorCopies take_form(const TensorForm& form, const NetworkConfig& config,
                       std::vector<io::TensorView>& tensors) {
  TensorCopies copies;
  const ShapesByName shapes = parameter_shapes(config);
  std::vector<io::TensorView> taken;
  for (io::TensorView& tensor : tensors) {
    const StackedRows* const stack = stack_there(form, tensor.name);
    if (auto parts = stack ? split(*stack, tensor, shapes) : std::nullopt)
      taken.insert(taken.end(), parts->begin(), parts->end());
    else
      taken.push_back(std::move(tensor));
  }
  for (io::TensorView& tensor : taken) {
    if (tensor.shape.size() == 2 && is_transposed(form, tensor.name)) {
      copies.push_back(transposed(tensor, 0, tensor.elements()));
      tensor.data = copies.back();
      std::swap(tensor.shape[0], tensor.shape[1]);
    }
    const auto wanted = shapes.find(tensor.name);
    for (const ReshapedTensor& one : form.reshaped)
      if (wanted != shapes.end() && contains(tensor.name, one.here) &&
          tensor.shape == one.there(config))
        tensor.shape = wanted->second;
  }
  tensors = std::move(taken);
  return copies;
}

std::vector<WrittenTensor> written_tensors(const TensorForm* form, const NetworkConfig& config,
                                           const io::TensorSet& set) {
  std::vector<WrittenTensor> all;
  std::map<std::string, std::size_t> stacks;  // by name there
  for (const io::TensorView& tensor : set.tensors()) {
    WrittenTensor written{tensor.name, tensor.shape, {tensor.name}};
    if (form == nullptr) {
      all.push_back(std::move(written));
      continue;
    }
    if (tensor.shape.size() == 2 && is_transposed(*form, tensor.name)) {
      std::swap(written.shape[0], written.shape[1]);
      written.transposed = true;
    }
    for (const ReshapedTensor& one : form->reshaped)
      if (contains(tensor.name, one.here)) written.shape = one.there(config);
    const StackedRows* stack = nullptr;
    std::string_view part;
    for (const StackedRows& one : form->stacks)
      for (const std::string_view here : one.here)
        if (!here.empty() && contains(tensor.name, here)) stack = &one, part = here;
    if (stack == nullptr) {
      written.name = name_there(*form, tensor.name);
      all.push_back(std::move(written));
      continue;
    }
    const std::string name = replaced(tensor.name, part, stack->there);
    if (!stacks.try_emplace(name, all.size()).second) continue;
    // In the order of the rows, whatever that of the set is.
    written.name = name_there(*form, name);
    written.parts.clear();
    written.shape[0] = 0;
    for (const std::string_view here : stack->here) {
      if (here.empty()) continue;
      written.parts.push_back(replaced(name, stack->there, here));
      const io::TensorView* const found = set.find(written.parts.back());
      if (found == nullptr) fail("'{}' has no '{}'", set.path(), written.parts.back());
      written.shape[0] += found->shape[0];
    }
    all.push_back(std::move(written));
  }
  return all;
}

Tensor written_values(const WrittenTensor& tensor, const io::TensorSet& set, std::int64_t first,
                      std::int64_t count) {
  if (tensor.transposed) {
    io::TensorView from = *set.find(tensor.parts[0]);
    const std::vector<std::byte> copy = transposed(from, first, count);
    from.data = copy;
    from.shape = {count};
    return read_floats(from).clone();
  }
  std::vector<Tensor> pieces;
  std::int64_t begin = 0;  // of the part
  for (const std::string& part : tensor.parts) {
    const io::TensorView& from = *set.find(part);
    const std::int64_t elements = from.elements(), low = std::max(first, begin),
                       high = std::min(first + count, begin + elements);
    if (low < high) {
      pieces.push_back(read_floats(from, low - begin, high - low));
    }
    begin += elements;
  }
  if (pieces.size() == 1) return pieces[0];
  const Tensor all({count});
  std::int64_t at = 0;
  for (const Tensor& piece : pieces) {
    std::memcpy(all.rows(at, at + piece.elements()).raw(), piece.raw(), piece.bytes());
    at += piece.elements();
  }
  return all;
}

}  // namespace vfm::models
