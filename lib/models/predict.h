// Predicts how long a GPU would take for the work that Device::meta counts (tensor/meta.h), without
// a GPU.
//
// A kernel call takes as long as its operations or its bytes, whichever is longer, at the rates of
// models/gpu_table.h. Between calls is a gap. The rates are estimates, so a time from here must be
// called predicted, never measured. It leaves out reading and prefetching data, exchange between
// ranks, computation on the host, checkpoints, videos, and what libraries try out at first.
// Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "models/gpu_table.h"
#include "models/kernel_time.h"

namespace vfm::models {

/// Copies that run in parallel with kernels: how long they take, and how much of that is exposed. A
/// copy is hidden for as long as the kernels run that are in parallel with it.
struct CopyTime {
  double calls = 0, bytes = 0, seconds = 0, exposed = 0;

  TimeLine line() const;  ///< the line of the exposed time
  Json to_json() const;   ///< {"calls", "bytes", "seconds", "exposed"}
};
CopyTime copy_time(const Gpu& gpu, const std::vector<CopyBeside>& copies);

/// {"gpu", "seconds", "tokens_per_second", "mfu", "lines": [{"name", "seconds", "calls", "flops",
/// "bytes"}, ...], "fits", "verdict"}, and with `copies` "offload". `flops` are the model's
/// operations, without recomputation. `memory` is the bytes that the model needs on the GPU.
Json prediction(const Gpu& gpu, std::vector<TimeLine> lines, double tokens, double flops,
                double memory, const CopyTime& copies = {});
/// Returns a count such as "12.3 TFLOPs".
std::string count_words(double count, std::string_view unit);
/// Returns a time such as "12.5 ms" or "12.49 s".
std::string time_words(double seconds);
/// Returns a prediction in words, without the seconds.
std::string prediction_words(const Json& prediction);

}  // namespace vfm::models
