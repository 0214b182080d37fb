// Adds the curves of a training run to a page, from its metrics.jsonl (vfm-train(1)).
// Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "report/html.h"

namespace vfm::report {

/// Adds loss, validation loss and gradient norm by step; for a tokenizer also PSNR and SSIM of
/// validations. Missing data are left out. Throws Error if `metrics` cannot be read.
void add_training_curves(Page& page, const std::string& metrics);

}  // namespace vfm::report
