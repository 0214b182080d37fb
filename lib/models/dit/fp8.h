// Inference of the diffusion transformer in FP8 (E4M3): checks whether a model can run in FP8, and
// measures how much FP8 changes the output.
//
// FP8 is for the products with the blocks' matrices and for self-attention, nearly all of the
// arithmetic. The first and the last matrix, conditioning, norms, attention to the text and the
// residual stream keep their types. FP8 is off by default. The error depends on the weights, so
// measure it before switching FP8 on.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string_view>

#include "models/dit/network.h"

namespace vfm::models {

/// Parses "off", "linear", or "all", which includes attention. Throws Error{usage} for anything
/// else.
Fp8Parts parse_fp8(std::string_view name);
/// Returns the name of `parts`; "attention" for attention alone.
std::string_view fp8_name(Fp8Parts parts);

/// Returns `parts` without attention if that would not run in FP8 on `device`
/// (ops::why_no_fp8_attention()). With `say` it logs a warning then.
Fp8Parts running_in_fp8(Fp8Parts parts, Device device, bool say);

/// Throws Error{usage} naming why the model cannot compute `parts` in FP8: its architecture, or
/// matrix sizes that are not multiples of 16; for attention, a head dim other than 64 or 128, or a
/// type other than bf16.
void check_fp8(const NetworkConfig& config, DType compute, Fp8Parts parts);

/// Returns the root mean square of the difference between two outputs, divided by that of
/// `without`. Both are on the CPU. NaN if an output has one; infinity if only `without` is zero.
double output_change(const Tensor& without, const Tensor& with);

/// Computes an output without FP8 and with `parts` in FP8, and returns output_change(). `switch_to`
/// switches FP8, and `output` returns the output on the CPU. Leaves FP8 off. Throws what these two
/// throw. Not thread-safe.
double fp8_error(const std::function<void(Fp8Parts)>& switch_to,
                 const std::function<Tensor()>& output, Fp8Parts parts);

}  // namespace vfm::models
