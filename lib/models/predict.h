// How long a GPU would take for the work that Device::meta counts (tensor/meta.h), without a GPU.
//
// A call of a kernel takes as long as its operations or its bytes, whichever is longer, at the
// rates of a table (models/gpu_table.h); between calls is a gap. The rates were judged before: a
// time from here is predicted, and never to be called measured. Not in it: reading
// data and sending it ahead, what ranks exchange, what the host computes, checkpoints, videos, and
// what a library tries out at first.
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

/// Copies beside what is computed: how long they take, and of that what nothing hides. A copy is
/// hidden as far as what is computed meanwhile takes as long.
struct CopyTime {
  double calls = 0, bytes = 0, seconds = 0, exposed = 0;

  TimeLine line() const;  ///< of what is exposed
  Json to_json() const;   ///< {"calls", "bytes", "seconds", "exposed"}
};
CopyTime copy_time(const Gpu& gpu, const std::vector<CopyBeside>& copies);

/// {"gpu", "seconds", "tokens_per_second", "mfu", "lines": [{"name", "seconds", "calls", "flops",
/// "bytes"}, ...], "fits", "verdict"}, and with `copies` "offload". `flops` are those that the
/// model needs, without recomputation; `memory` is what it needs of the GPU's, in bytes.
Json prediction(const Gpu& gpu, std::vector<TimeLine> lines, double tokens, double flops,
                double memory, const CopyTime& copies = {});
/// "12.3 TFLOPs".
std::string count_words(double count, std::string_view unit);
/// "12.5 ms", "12.49 s".
std::string time_words(double seconds);
/// A prediction in words, but the seconds.
std::string prediction_words(const Json& prediction);

}  // namespace vfm::models
