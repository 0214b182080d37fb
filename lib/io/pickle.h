// Reads the tensors of a pickle that torch.save wrote, without running code. A pickle is a program
// that may call any function of Python. This reader allows only the instructions, classes and
// functions that build tensors, dictionaries and lists. The data of tensors are in other members of
// the archive (io/torch_zip.h). Source: CPython Lib/pickletools.py (protocol 2); PyTorch
// torch/_utils.py for the arguments.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace vfm::io {

/// A tensor of a pickle: a view of a storage, which is PyTorch's array of elements.
struct PickledTensor {
  /// Name such as "a.b.0" for root["a"]["b"][0] or root.a.b[0].
  std::string name;
  std::string dtype;    ///< Type as in safetensors, such as "F32".
  std::string storage;  ///< Key of the storage.
  std::int64_t storage_elements = 0;
  std::int64_t offset = 0;                   ///< Position of the first element in the storage.
  std::vector<std::int64_t> shape, strides;  ///< Dimensions and strides in elements. Not negative.
};

/// Returns all tensors, in the pickle's order. If the root has a dictionary named "state_dict",
/// "model", "model_state_dict" or "module", returns only the tensors of this dictionary, and logs
/// the dictionary's name. Throws Error, which names `what`, for another protocol, for an
/// instruction, class or function that is not allowed, for invalid bytes, for too deep a nesting,
/// or if no tensor is found. Fuzzed. Any thread.
std::vector<PickledTensor> parse_pickle(std::span<const std::byte> bytes, std::string_view what);

}  // namespace vfm::io
