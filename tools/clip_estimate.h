// The option --dry-run of vfm-clip and `vfm-clip shots`.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "cli/estimate.h"
#include "clip/options.h"
#include "media/decode/decoder.h"

/// Estimates the time of the work. Replaces the input in `options` by a sample, and clears the name
/// of the report, so that no report is written.
inline long tell_clip_estimate(
    vfm::clip::ClipOptions& options, int jobs,
    std::function<long(vfm::Progress& progress, vfm::io::ManifestWriter& manifest)> work) {
  options.report.clear();
  options.explain.clear();
  options.most_seconds = vfm::cli::kEstimateSeconds;
  options.shot_format = vfm::clip::ShotFormat::json;  // Other formats write to standard output.
  options.print_table = nullptr;
  return vfm::cli::tell_estimate(
      {.inputs = options.inputs,
       .folder = options.directory,
       .input = vfm::cli::estimate_input<vfm::io::ManifestReader>(options.inputs),
       .kind = "video",
       .jobs = jobs,
       .work = std::move(work),
       .seconds =
           [&options](const vfm::io::Record& video) {
             const vfm::media::Decoder decoder(video.path(), {.stream = options.recipe.stream});
             return decoder.info().duration;
           },
       .samples = nullptr});
}
