// Reads the tensors of a pickle by torch.save, without running code. A pickle is a program that
// builds values and may call anything in Python. This reader knows the few instructions that build
// tensors, dictionaries and lists, compares the names of classes and functions with a list, and
// refuses all else.
// The numbers lie in other members of the archive (io/torch_zip.h).
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

/// A tensor of a pickle: a view of a storage.
struct PickledTensor {
  std::string name;     ///< "a.b.0" for root["a"]["b"][0], or for attributes of those names
  std::string dtype;    ///< "F32", ... as in safetensors
  std::string storage;  ///< its key
  std::int64_t storage_elements = 0;
  std::int64_t offset = 0;                   ///< all in elements, not negative
  std::vector<std::int64_t> shape, strides;  ///< of the same length
};

/// All tensors, in the pickle's order. A dictionary with one of the members "state_dict", "model",
/// "model_state_dict" or "module" that is a dictionary is replaced by that member, so that a
/// training script's other data, such as averages, are left out, which is logged. Throws Error,
/// naming `what`: another protocol, an instruction, class or function that is not on the list,
/// damage, too deep a nesting, or no tensor at all. Fuzzed. Any thread.
std::vector<PickledTensor> parse_pickle(std::span<const std::byte> bytes, std::string_view what);

}  // namespace vfm::io
