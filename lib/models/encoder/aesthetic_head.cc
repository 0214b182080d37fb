// SPDX-License-Identifier: Apache-2.0
#include "models/encoder/aesthetic_head.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "io/tensor_set.h"
#include "models/folder/hf_folder.h"
#include "models/folder/load_tensors.h"
#include "models/folder/weight_files.h"

namespace vfm::models {
namespace {

/// Wider layers are no such head.
constexpr std::int64_t kWidest = 1 << 16;

struct HeadKind {
  const char* name;
  std::vector<std::string> layers;  // before ".weight" and ".bias", with the dot
  bool relu;
};

const std::vector<HeadKind>& head_kinds() {
  static const std::vector<HeadKind> kinds = {
      {"linear", {""}, false},
      {"mlp", {"layers.0.", "layers.2.", "layers.4.", "layers.6.", "layers.7."}, false},
      {"mlp:relu", {"layers.0.", "layers.3.", "layers.6.", "layers.9.", "layers.11."}, true}};
  return kinds;
}

const HeadKind& kind_of(const io::TensorSet& file) {
  for (const HeadKind& kind : head_kinds())
    if (file.tensors().size() == 2 * kind.layers.size() &&
        std::all_of(kind.layers.begin(), kind.layers.end(), [&](const std::string& layer) {
          return file.find(layer + "weight") && file.find(layer + "bias");
        }))
      return kind;
  fail(
      "'{}' is not an aesthetic head: its tensors are neither weight and bias, nor those of layers "
      "0, 2, 4, 6, 7 or 0, 3, 6, 9, 11",
      file.path());
}

/// What read_floats() says of a tensor of other numbers does not name the file.
Tensor read_head_tensor(const io::TensorView& tensor, const std::string& path) {
  try {
    return read_floats(tensor);
  } catch (const Error& error) {
    fail("'{}' is not an aesthetic head: {}", path, error.what());
  }
}

std::vector<float> numbers(const io::TensorView& tensor, const std::string& path) {
  const Tensor values = read_head_tensor(tensor, path);
  const std::span<const float> span = values.floats();
  if (!std::all_of(span.begin(), span.end(), [](float value) { return std::isfinite(value); }))
    fail("'{}': {} has values that are not finite", path, tensor.name);
  return {span.begin(), span.end()};
}

}  // namespace

AestheticHead::AestheticHead(const std::string& file, int dim) {
  as_usage([&] {
    const std::unique_ptr<io::TensorSet> set = open_weight_file(file);
    const HeadKind& kind = kind_of(*set);
    relu_ = kind.relu;
    std::int64_t width = dim;
    for (const std::string& name : kind.layers) {
      const io::TensorView &weight = *set->find(name + "weight"), &bias = *set->find(name + "bias");
      const bool last = &name == &kind.layers.back();
      if (weight.shape.size() != 2 || weight.shape[0] < 1 || weight.shape[0] > kWidest ||
          (last && weight.shape[0] != 1) || bias.shape != Shape{weight.shape[0]})
        fail("'{}' is not an aesthetic head: {} and {} have other shapes than such a head's", file,
             weight.name, bias.name);
      if (weight.shape[1] != width && layers_.empty())
        fail(
            "'{}' scores vectors of {} numbers, and the encoder's have {}: a head goes with the "
            "CLIP that it was trained on",
            file, weight.shape[1], dim);
      if (weight.shape[1] != width)
        fail("'{}' is not an aesthetic head: {} does not follow the layer before it", file,
             weight.name);
      layers_.push_back({static_cast<int>(width), static_cast<int>(weight.shape[0]),
                         numbers(weight, file), numbers(bias, file)});
      width = weight.shape[0];
    }
    config_ = Json{{"head", kind.name}, {"hash", hash_model("aesthetic", Json::object(), *set)}};
  });
}

double AestheticHead::score(std::span<const float> vector) const {
  std::vector<double> values(vector.begin(), vector.end());
  for (const Layer& layer : layers_) {
    if (values.size() != static_cast<std::size_t>(layer.in))
      fail("an aesthetic head got {} numbers, not {}", values.size(), layer.in);
    std::vector<double> sums(layer.bias.begin(), layer.bias.end());
    const float* weight = layer.weight.data();
    for (double& sum : sums)
      for (const double value : values)
        sum += value * double{*weight++};
    const bool last = &layer == &layers_.back();
    if (relu_ && !last)
      for (double& sum : sums)
        sum = std::max(sum, 0.0);
    values = std::move(sums);
  }
  return values.at(0);
}

}  // namespace vfm::models
