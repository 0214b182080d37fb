// The error for a GPU without FP8.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace vfm::ops {

/// check_gpu() for launchers that return "not supported" on a GPU without FP8; the error says so.
void check_fp8_gpu(int status, const char* what);

}  // namespace vfm::ops
