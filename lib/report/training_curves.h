// The curves of a training run, from its metrics.jsonl (vfm-train(1)).
// Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "report/html.h"

namespace vfm::report {

/// Loss, also of validation, and gradient norm by step; for a tokenizer also the PSNR and SSIM of
/// validations. Missing data are left out. Throws Error if it cannot be read.
void add_training_curves(Page& page, const std::string& metrics);

}  // namespace vfm::report
