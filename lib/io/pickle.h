// Reads the tensors of a pickle by torch.save, without running code. A pickle is a program that
// builds values and may call anything in Python. This reader has only the few instructions that
// build tensors, dictionaries and lists, allows only listed classes and functions, and refuses
// everything else. The tensors' data are in other members of the archive (io/torch_zip.h).
// Source: CPython Lib/pickletools.py (protocol 2); PyTorch torch/_utils.py for the arguments.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace vfm::io {

/// A tensor of a pickle: a view of a storage, PyTorch's array of elements.
struct PickledTensor {
  std::string name;     ///< "a.b.0" for root["a"]["b"][0], or for attributes of those names
  std::string dtype;    ///< "F32", ... as in safetensors
  std::string storage;  ///< the storage's key
  std::int64_t storage_elements = 0;
  std::int64_t offset = 0;                   ///< position of the first element in the storage
  std::vector<std::int64_t> shape, strides;  ///< in elements, not negative
};

/// Returns all tensors, in the pickle's order. If a dictionary has a member "state_dict", "model",
/// "model_state_dict" or "module" that is a dictionary, only this member is used, and the log says
/// so. Other data of a training script, such as averages, are left out. Throws Error, which names
/// `what`, for another protocol, an instruction, class or function that is not allowed, damage, too
/// deep a nesting, or no tensor at all. Fuzzed. Any thread.
std::vector<PickledTensor> parse_pickle(std::span<const std::byte> bytes, std::string_view what);

}  // namespace vfm::io
