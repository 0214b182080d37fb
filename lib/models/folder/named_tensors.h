// The tensors of other people's files under our names (models/folder/hf_names.h), and what their
// shapes say of a network. The data stay where they are.
// Thread-safety: free functions and values, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "io/tensor_set.h"

namespace vfm::models {

/// The tensors under names_today(), without those that are no weights.
std::vector<io::TensorView> named_today(const io::TensorSet& set, std::string_view type,
                                        const Json& config);

/// A set under other names. It owns what the views point to.
class RenamedSet final : public io::TensorSet {
 public:
  /// Throws Error if two of `tensors`, which are views of those of `source`, have one name.
  RenamedSet(std::unique_ptr<io::TensorSet> source, std::vector<io::TensorView> tensors);
  void release(const io::TensorView& tensor) const override { source_->release(tensor); }

 private:
  std::unique_ptr<io::TensorSet> source_;
};

/// Shapes by name, of a network that NVIDIA published.
class NamedShapes {
 public:
  /// `path` is for messages. Of several tensors of one name the last counts.
  NamedShapes(std::string path, const std::vector<io::TensorView>& tensors);

  bool has(const std::string& name) const { return shapes_.find(name) != shapes_.end(); }
  /// Throws Error{usage} if the tensor is not there, or has no such dimension, or that is 0.
  std::int64_t size(const std::string& name, std::size_t dim) const;
  /// How many of `before`0`after`, `before`1`after`... there are.
  int count(const std::string& before, const std::string& after) const;
  /// Throws Error{usage}: these tensors are no network, and why.
  [[noreturn]] void refuse(const std::string& why) const;

 private:
  std::string path_;
  std::map<std::string, std::vector<std::int64_t>> shapes_;
};

}  // namespace vfm::models
