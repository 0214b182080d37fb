// Gives tensors of files from elsewhere the names used here (models/folder/hf_names.h), and reads a
// network's sizes from their shapes. Data are not copied.
// Thread-safety: free functions and values, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "io/tensor_set.h"

namespace vfm::models {

/// The tensors under their names_today(), without those that are not weights.
std::vector<io::TensorView> named_today(const io::TensorSet& set, std::string_view type,
                                        const Json& config);

/// A set under other names. It owns the data that the views point to.
class RenamedSet final : public io::TensorSet {
 public:
  /// `tensors` are renamed views of tensors of `source`, or of `copies`. Throws Error if two have
  /// one name.
  RenamedSet(std::unique_ptr<io::TensorSet> source, std::vector<io::TensorView> tensors,
             std::vector<std::vector<std::byte>> copies = {});
  void release(const io::TensorView& tensor) const override { source_->release(tensor); }

 private:
  std::unique_ptr<io::TensorSet> source_;
  std::vector<std::vector<std::byte>> copies_;
};

/// Shapes by name, for a network that its authors published without a configuration.
class NamedShapes {
 public:
  /// Returns a tensor's name as it is in the file, for messages.
  using InFile = std::function<std::string(const std::string& name)>;

  /// `path` is for messages. If several tensors have one name, the last counts. Without `in_file`
  /// messages have the names of `tensors`.
  NamedShapes(std::string path, const std::vector<io::TensorView>& tensors, InFile in_file = {});

  bool has(const std::string& name) const { return shapes_.find(name) != shapes_.end(); }
  /// A size. Throws Error{usage} if there is no such tensor or dimension, or the size is 0.
  std::int64_t size(const std::string& name, std::size_t dim) const;
  /// Number of tensors `before`0`after`, `before`1`after`... without a gap.
  int count(const std::string& before, const std::string& after) const;
  std::string in_file(const std::string& name) const { return in_file_ ? in_file_(name) : name; }
  /// Throws Error{usage} that says why the tensors are not a network.
  [[noreturn]] void refuse(const std::string& why) const;

 private:
  std::string path_;
  InFile in_file_;
  std::map<std::string, std::vector<std::int64_t>> shapes_;
};

}  // namespace vfm::models
