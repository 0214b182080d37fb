// SPDX-License-Identifier: Apache-2.0
#include "nn/attached_adapters.h"

#include <map>
#include <string>

#include "base/error.h"
#include "nn/weight_maker.h"

namespace vfm::nn {

void AttachedAdapters::attach(std::deque<Weight>& weights, const WeightOptions& options,
                              const NetworkLayout& layout, const std::vector<AdapterShape>& shapes,
                              bool trainable) {
  struct Place {
    Weight* weight;
    std::size_t part;
  };
  std::map<std::string, Place> places;
  for (Weight& weight : weights)
    for (std::size_t i = 0; i < weight.parameters().size(); ++i)
      places[weight.parameters()[i].name] = {&weight, i};
  WeightMaker maker{weights_, options};
  maker.options.trainable = trainable;
  for (const AdapterShape& shape : shapes) {
    const auto found = places.find(shape.module + ".weight");
    if (found == places.end()) fail_usage("the model has no matrix '{}' to adapt", shape.module);
    Weight& weight = *found->second.weight;
    const std::size_t part = found->second.part;
    const Parameter& matrix = weight.parameters()[part];
    const Shape& whole = matrix.placement.global;
    if (whole.size() != 2)
      fail_usage("'{}' is not a matrix: an adapter cannot adapt it", shape.module);
    // Of a matrix that is cut, the adapter's matrix that has the same dim is.
    const auto cut = [&](std::size_t dim) {
      return matrix.shape()[dim] < whole[dim] ? layout.cut(static_cast<int>(dim)) : Cut();
    };
    maker.options.absent = !matrix.here();
    maker.options.on_all_stages = matrix.on_all_stages;
    Weight& a = maker.make({shape.module + ".lora_A.weight"}, {shape.rank, whole[1]}, Init::fan_in,
                           weight.dtype(), true, cut(1));
    Weight& b = maker.make({shape.module + ".lora_B.weight"}, {whole[0], shape.rank}, Init::zero,
                           weight.dtype(), true, cut(0));
    if (matrix.here()) weight.attach(part, a, b, shape.scale);
    parameters_.push_back(&a.parameters().front());
    parameters_.push_back(&b.parameters().front());
  }
}

void AttachedAdapters::watch(ops::Tape& tape) const {
  for (const Weight& weight : weights_)
    weight.watch(tape);
}

}  // namespace vfm::nn
