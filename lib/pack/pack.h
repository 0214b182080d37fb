// The library behind vfm-pack: makes latents from clips.
//
// There is one shard of latents for each shard of clips and each split of its samples,
// DIR/SPLIT/X.tar (data/latents.h). Samples are encoded in parallel; shards are written in input
// order.
//
// Resume: X.json beside each shard, written last, has the options and hashes of tars that decide
// the shard, its index, sums for statistics, and its errors. If options and tars are unchanged, the
// shard is kept and its errors are reported again. Otherwise the shard is made again. Shards that
// are no longer in the input are removed. DIR/pack.json has the options. A folder of different
// options, or with a shard of the same name from elsewhere, is an error; with `force` the folder is
// emptied. index.jsonl and latents.json are written at the end. They are sorted by shard name, and
// do not depend on the order of the input.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/progress.h"
#include "data/clip_pixels.h"
#include "data/latents.h"
#include "io/manifest.h"
#include "models/tokenizer.h"
#include "shard/reader.h"
#include "share/slots.h"
#include "tensor/tensor.h"
#include "workers/stage_models.h"

namespace vfm::pack {

struct PackOptions {
  /// The inputs, in the forms of shard/shard_input.h.
  std::vector<std::string> inputs;
  std::string output;
  bool force = false;
  shard::ReadLimits limits;
  models::TokenizerConfig tokenizer;
  /// The tokenizer's device. On a GPU a tokenizer from a folder rounds differently than on the CPU.
  /// A builtin tokenizer does not.
  Device device = Device::cpu;
  std::uint64_t tokenizer_memory = 0;  ///< argument of models::make_tokenizer()
  /// If not null, the tokenizer runs in these workers, on `device`, and video engines of their GPUs
  /// decode as `hwaccel` says (media::choose_hardware), unless `clip` has its own hardware. Workers
  /// need service kClips (pack/clip_encoder.h).
  workers::StageModels* workers = nullptr;
  std::string hwaccel = "none";
  /// The size, length and crop of windows. Set time_step to the tokenizer's time factor, and
  /// multiple to twice its space factor.
  data::PixelOptions clip;
  std::string report;  ///< HTML file; empty: none
};

/// Writes a record for each shard to standard output, when the shard is on disk. Returns the number
/// of recorded errors. Throws Error if nothing could be packed; Error{usage} for bad options or a
/// folder of different options, and Stopped.
long run(const PackOptions& options, share::Slots& slots, Progress& progress,
         io::ManifestWriter& manifest);

}  // namespace vfm::pack
