// Inference of the diffusion transformer in FP8 (E4M3): what is possible, and how far the output is
// then from that of the model's own type.
//
// In FP8 are the products with the blocks' matrices and self-attention: nearly all of the
// arithmetic. The first and the last matrix, conditioning, norms, attention to the text and the
// residual stream stay what they are. Off unless asked for: the error depends on the weights, so
// measure it before switching FP8 on.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string_view>

#include "models/dit/network.h"

namespace vfm::models {

/// "off", "linear", or "all" with attention; throws Error{usage} for anything else.
Fp8Parts parse_fp8(std::string_view name);
/// The name of parts; "attention" for attention alone.
std::string_view fp8_name(Fp8Parts parts);

/// Whether attention has a faster body on `device` than our own, which those in FP8 and of a ring
/// are: cuDNN's, in bf16.
bool attention_by_cudnn(Device device);
/// `parts`, without those that are faster without FP8 on `device`, of which a warning says so. Of
/// ranks between whom keys go round: generate/sampling/faster_fp8.h.
Fp8Parts faster_in_fp8(Fp8Parts parts, Device device);

/// Throws Error{usage} naming what FP8 does not take: matrices whose sizes are no multiples of 16;
/// for attention heads other than 64 or 128, or a model that does not compute in bf16.
void check_fp8(const NetworkConfig& config, DType compute, Fp8Parts parts);

/// Root mean square of the difference of two outputs on the CPU, as a part of that of the first.
/// NaN if an output has one, infinity if only the first is zero.
double output_change(const Tensor& without, const Tensor& with);

/// Runs the batch without and with FP8: output_change(). Leaves FP8 off. Throws what
/// set_inference_fp8() throws. Not thread-safe.
double fp8_error(DiffusionNetwork& network, const NetworkBatch& batch, Fp8Parts parts);
/// The same where `switch_to` switches FP8, and `output` gives the output, on the CPU.
double fp8_error(const std::function<void(Fp8Parts)>& switch_to,
                 const std::function<Tensor()>& output, Fp8Parts parts);

}  // namespace vfm::models
