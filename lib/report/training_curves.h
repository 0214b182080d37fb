// Adds curves of a training run to a page, from the run's metrics.jsonl (vfm-train(1)).
// Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "report/html.h"

namespace vfm::report {

/// Adds charts of loss, validation loss and gradient norm by step. For a tokenizer, also adds
/// charts of PSNR and SSIM. Leaves out missing data. Throws Error if the file `metrics` cannot be
/// read.
void add_training_curves(Page& page, const std::string& metrics);

}  // namespace vfm::report
