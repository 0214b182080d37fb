// The library behind vfm-pack, which makes latents from clips.
//
// For each shard of clips and each split of its samples there is a shard of latents,
// DIR/SPLIT/X.tar (data/latents.h). Samples are encoded in parallel, and shards are written in
// input order.
//
// For each shard of latents, the file X.json is written last, beside the tar. X.json has the
// options, the hashes of the source tars, the shard's index, sums for statistics, and errors. If
// options and source tars are unchanged, a later run keeps the shard and reports its errors again.
// Latents of shards that are no longer in the input are removed. If the folder has other options
// (DIR/pack.json), or a shard of the same name that was made from another input, run() throws
// Error. If `force` is true, run() does not throw in these cases, because it first removes
// vfm-pack's files. At the end, index.jsonl and latents.json are written, sorted by name of shard.
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
#include "pack/folder.h"
#include "shard/part_output.h"
#include "shard/reader.h"
#include "share/slots.h"
#include "tensor/tensor.h"
#include "workers/stage_models.h"

namespace vfm::pack {

struct PackOptions {
  /// Inputs, in a form that shard/shard_input.h accepts.
  std::vector<std::string> inputs;
  std::string output;
  bool force = false;
  const shard::PartTask* parts = nullptr;  ///< Parts of the work, or null.
  shard::ReadLimits limits;
  models::TokenizerConfig tokenizer;
  /// Device of the tokenizer. A tokenizer from a folder rounds differently on a GPU and on the CPU.
  /// A builtin tokenizer gives the same result on both devices.
  Device device = Device::cpu;
  std::uint64_t tokenizer_memory = 0;  ///< Argument `memory` of models::make_tokenizer().
  /// Workers with service kClips (pack/clip_encoder.h) that run the tokenizer on `device`, or null.
  workers::StageModels* workers = nullptr;
  /// How workers on GPUs decode (media::choose_hardware). If clip.hardware is set, `hwaccel` must
  /// be "none".
  std::string hwaccel = "none";
  /// Size, length and crop of windows. Set clip.time_step to the tokenizer's time factor, and
  /// clip.multiple to twice the tokenizer's space factor.
  data::PixelOptions clip;
  std::string report;  ///< Path of the HTML report, or empty.
};

/// Returns what latents.json says of a tokenizer.
LatentTokenizer latent_tokenizer(const models::VideoTokenizer& tokenizer);

/// Writes a record for each shard to `manifest`, as soon as the shard is on disk. Returns the
/// number of recorded errors. Throws Error if nothing could be packed. Throws Error{usage} for bad
/// options, or if the folder has other options. Throws Stopped.
///
/// With options.parts, writes shards and the files of shard/part_output.h, and tokenizer.json
/// beside these. pack/whole_latents.h then writes the files about all shards. Returns the number of
/// errors that may pass.
long run(const PackOptions& options, share::Slots& slots, Progress& progress,
         io::ManifestWriter& manifest);

}  // namespace vfm::pack
