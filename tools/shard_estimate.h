// The option --dry-run of tools whose input is shards.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/json_fwd.h"
#include "cli/estimate.h"
#include "shard/input_totals.h"
#include "shard/shard_input.h"

/// Calls cli::tell_estimate() for a tool's `inputs` and its output `folder`. The other arguments
/// have the meaning of the fields of cli::Estimate with the same names.
inline long tell_shard_estimate(std::vector<std::string>& inputs, std::string& folder, int jobs,
                                std::function<long(vfm::Progress&, vfm::io::ManifestWriter&)> work,
                                bool phases = false, std::function<vfm::Json()> counts = nullptr,
                                std::function<vfm::Json(std::string&)> model = nullptr) {
  return vfm::cli::tell_estimate({.inputs = inputs,
                                  .folder = folder,
                                  .input = vfm::cli::estimate_input<vfm::shard::ShardInput>(inputs),
                                  .kind = "shard",
                                  .jobs = jobs,
                                  .work = std::move(work),
                                  .phases = phases,
                                  .seconds = vfm::shard::video_seconds,
                                  .samples = vfm::shard::sample_count,
                                  .counts = std::move(counts),
                                  .model = std::move(model)});
}
