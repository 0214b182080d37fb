// SPDX-License-Identifier: Apache-2.0
#include "models/folder/named_tensors.h"

#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "models/folder/hf_names.h"

namespace vfm::models {

std::vector<io::TensorView> named_today(const io::TensorSet& set, std::string_view type,
                                        const Json& config) {
  std::vector<std::string> names;
  for (const io::TensorView& tensor : set.tensors())
    names.push_back(tensor.name);
  names = names_today(type, config, names);
  std::vector<io::TensorView> tensors;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i].empty()) continue;
    tensors.push_back(set.tensors()[i]);
    tensors.back().name = std::move(names[i]);
  }
  return tensors;
}

RenamedSet::RenamedSet(std::unique_ptr<io::TensorSet> source, std::vector<io::TensorView> tensors,
                       std::vector<std::vector<std::byte>> copies)
    : TensorSet(source->path()), source_(std::move(source)), copies_(std::move(copies)) {
  for (io::TensorView& tensor : tensors)
    add(std::move(tensor));
}

NamedShapes::NamedShapes(std::string path, const std::vector<io::TensorView>& tensors,
                         InFile in_file)
    : path_(std::move(path)), in_file_(std::move(in_file)) {
  for (const io::TensorView& tensor : tensors)
    shapes_[tensor.name] = tensor.shape;
}

std::int64_t NamedShapes::size(const std::string& name, std::size_t dim) const {
  const auto found = shapes_.find(name);
  if (found == shapes_.end()) refuse("it has no '" + in_file(name) + "'");
  if (dim >= found->second.size() || found->second[dim] < 1)
    refuse(vfm::format("'{}' has no side {}, or an empty one", in_file(name), dim + 1));
  return found->second[dim];
}

int NamedShapes::count(const std::string& before, const std::string& after) const {
  int n = 0;
  while (has(before + std::to_string(n) + after))
    ++n;
  return n;
}

void NamedShapes::refuse(const std::string& why) const {
  fail_usage("'{}' has the names of a published network, but is none: {}", path_, why);
}

}  // namespace vfm::models
