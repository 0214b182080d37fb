// Parts that the folders of encoders share: activations by name, a selection of a file's tensors,
// rows of a table.
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
#include "ops/pointwise/activations.h"
#include "tensor/tensor.h"

namespace vfm::models {

/// The activation of a name in config.json: "gelu", "gelu_new", "gelu_pytorch_tanh" or
/// "quick_gelu". Throws Error{usage} naming `what` for any other name.
ops::ActivationKind gelu_of(const std::string& name, std::string_view what);

/// A number in config.json, 1 to 2^24, or `fallback` if it is missing. Throws Error{usage}.
int positive_field(const Json& config, const char* name, int fallback, std::string_view what);

/// Some tensors of another set, under new names. The other set must outlive this one.
class SelectedSet final : public io::TensorSet {
 public:
  /// `name` maps a tensor's name in `source` to its new name, or to "" to leave it out. Throws
  /// Error if two tensors get one name.
  SelectedSet(const io::TensorSet& source,
              const std::function<std::string(const std::string&)>& name);
  void release(const io::TensorView& tensor) const override { source_.release(tensor); }

 private:
  const io::TensorSet& source_;
};

/// The headers of a file that does not exist, for Device::meta. Its addresses must not be read.
class HeaderSet final : public io::TensorSet {
 public:
  HeaderSet(const std::vector<TensorTarget>& targets, DType stored);
};

/// The rows `numbers` of a table [V, D] as [N, D], f32, on `device`. No other row is read. Throws
/// Error naming `path` for a number that is not below V. On Device::meta only the shape is
/// computed.
Tensor table_rows(const io::TensorView& table, std::span<const std::int32_t> numbers, Device device,
                  const std::string& path);

/// Throws Error unless each of `lengths` is above 0 and their sum is `tokens`.
void need_lengths(std::size_t tokens, std::span<const std::int64_t> lengths, const char* model);

}  // namespace vfm::models
