// In place of the CUDA driver, libcuda.so.1: enough of it for cuDNN to build plans for a GPU that
// is not there. Kernels that cuDNN wants to load are taken, and forgotten but for their names;
// nothing runs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace vfm::test {

/// Names of the kernels that were loaded since the last call.
std::vector<std::string> loaded_kernels();

}  // namespace vfm::test
