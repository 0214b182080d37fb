// What the folders of encoders have in common: activations by name, some of a file's tensors, rows
// of a table.
// Thread-safety: free functions and values, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "io/tensor_set.h"
#include "models/folder/load_tensors.h"
#include "ops/pointwise/text_activations.h"
#include "tensor/tensor.h"

namespace vfm::models {

/// The activation that config.json names "gelu", "gelu_new", "gelu_pytorch_tanh" or "quick_gelu".
/// Throws Error{usage} for another one.
ops::Gelu gelu_of(const std::string& name, std::string_view what);

/// A number of a config.json, or its default; 1 to 2^24. Throws Error{usage}.
int positive_field(const Json& config, const char* name, int fallback, std::string_view what);

/// Some tensors of a set, which must outlive it, under names of ours.
class SelectedSet final : public io::TensorSet {
 public:
  /// `name` gives a tensor's name here, or "": it is left out. Throws Error if two have one.
  SelectedSet(const io::TensorSet& source,
              const std::function<std::string(const std::string&)>& name);
  void release(const io::TensorView& tensor) const override { source_.release(tensor); }

 private:
  const io::TensorSet& source_;
};

/// The headers of a file that is not there, for Device::meta: addresses that nobody may read.
class HeaderSet final : public io::TensorSet {
 public:
  HeaderSet(const std::vector<TensorTarget>& targets, DType stored);
};

/// The rows of a table [V, D] by their numbers, [N, D] in f32 on the device; nothing else of it is
/// read. Throws Error for a number that is not below V, naming `path`; on Device::meta the shape
/// alone.
Tensor table_rows(const io::TensorView& table, std::span<const std::int32_t> numbers, Device device,
                  const std::string& path);

/// Throws Error unless `lengths`, each above 0, are those of `tokens` tokens.
void need_lengths(std::size_t tokens, std::span<const std::int64_t> lengths, const char* model);

}  // namespace vfm::models
