// How vfm-generate reads options whose text has parts, and what it refuses of others.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "base/error.h"
#include "generate/clip_output.h"
#include "generate/generate.h"
#include "media/encode_sessions.h"
#include "media/encoder.h"
#include "models/folder/load_model.h"

/// "WxH" into the prompt; empty: as it is.
inline void parse_size(const std::string& size, vfm::generate::Prompt& prompt) {
  if (size.empty()) return;
  int used = 0;
  if (std::sscanf(size.c_str(), "%9dx%9d%n", &prompt.width, &prompt.height, &used) != 2 ||
      used != static_cast<int>(size.size()))
    vfm::fail_usage("--size '{}' is not WIDTHxHEIGHT, as in 64x64", size);
  const auto [least, most] = std::minmax(prompt.width, prompt.height);
  if (least < 1 || most > vfm::generate::kLargestSide)
    vfm::fail_usage("--size '{}': width and height must be 1 to {} pixels", size,
                    vfm::generate::kLargestSide);
}

/// What stands after the last colon is a factor if it is a number, and else part of the path.
inline vfm::models::AdapterChoice::Set parse_lora(const std::string& lora) {
  const std::size_t colon = lora.rfind(':');
  if (colon == std::string::npos || colon + 1 == lora.size()) return {lora};
  const char* end = lora.data() + lora.size();
  double scale = 1;
  const auto [stop, error] = std::from_chars(lora.data() + colon + 1, end, scale);
  if (error != std::errc{} || stop != end) return {lora};
  if (!std::isfinite(scale)) vfm::fail_usage("--lora '{}': no finite scale", lora);
  if (colon == 0) vfm::fail_usage("--lora '{}' names no file", lora);
  return {lora.substr(0, colon), scale};
}

/// --parallel and --shard, as far as they can be refused before any work.
inline vfm::generate::ClipParallel layout_of(const std::string& text, bool shard, bool dry_run,
                                             bool decode_only) {
  vfm::generate::ClipParallel parallel = vfm::generate::parse_parallel(text);
  parallel.shard = shard;
  if (shard && parallel.alone() && parallel.choose == 0)
    vfm::fail_usage(
        "--shard is for ranks that make a clip together: give --parallel too, as in "
        "--parallel cfg=2,cp=4");
  if (dry_run && parallel.choose == vfm::generate::ClipParallel::kAllRanks)
    vfm::fail_usage(
        "--parallel auto: a dry run has no ranks, so say of how many, as in --parallel auto=8");
  if (decode_only && (!parallel.alone() || parallel.choose != 0))
    vfm::fail_usage("--parallel is for sampling, not for --decode-only");
  return parallel;
}

/// With --decode-only: these decide a latent.
inline void refuse_options_of_latents(const std::vector<const CLI::Option*>& of_latents) {
  std::string given;
  for (const CLI::Option* option : of_latents)
    if (option->count() > 0)
      given += (given.empty() ? "" : ", ") + option->get_name() + " (" + option->get_group() + ")";
  if (!given.empty())
    vfm::fail_usage("--decode-only reads latents, which are decided already: leave out {}", given);
}

/// Refuses one that cannot be used. One on a GPU is tried when its sessions are known; here,
/// whether this FFmpeg has it.
inline void check_encoder(const std::string& encoder) {
  if (vfm::media::encodes_on_gpu(encoder))
    vfm::media::coded_size(encoder, 2, 2);
  else
    vfm::generate::usable_encoder(encoder);
}
