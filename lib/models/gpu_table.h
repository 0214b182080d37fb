// GPUs that need not be here, and the rates that kernels and links reach there; or what
// vfm-train calibrate has measured of a machine, also of its CPU.
//
// The rates of the table were judged, from what others published; where each comes from says
// gpu_table.cc.
// Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "base/json_fwd.h"
#include "models/gpu.h"

namespace vfm::models {

/// That of the table; or of a file (vfm-train-calibrate(1)), whose name has a '/' or ends in
/// ".json", which then stays for the life of the program. Throws Error{usage} naming those that
/// there are, or what is wrong in the file.
const Gpu& find_gpu(std::string_view name);
/// That of the table whose title is in `description`, as a driver has it; null: none.
const Gpu* known_gpu(std::string_view description);
/// {"name", "title", "memory", ...}, links as {"bandwidth", "latency"}: what the file has.
Json to_json(const Gpu& gpu);

}  // namespace vfm::models
