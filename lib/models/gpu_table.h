// A table of GPUs, which this machine need not have, with the rates that kernels and links reach on
// them. Rates can also come from a file that vfm-train calibrate measured on a machine, for a GPU
// or a CPU.
//
// The rates in the table are estimates from published figures. gpu_table.cc names the source of
// each.
// Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "base/json_fwd.h"
#include "models/gpu.h"

namespace vfm::models {

/// Returns the GPU of this name in the table. If the name has a '/' or ends in ".json", returns the
/// GPU in this file (vfm-train-calibrate(1)), which then stays for the life of the program. Throws
/// Error{usage} naming the GPUs of the table, or what is wrong in the file.
const Gpu& find_gpu(std::string_view name);
/// Returns the GPU of the table whose title is in `description`, the driver's name; null if there
/// is none.
const Gpu* known_gpu(std::string_view description);
/// Returns the content of such a file: {"name", "title", "memory", ...}, with links as
/// {"bandwidth", "latency"}.
Json to_json(const Gpu& gpu);

}  // namespace vfm::models
