// vfm-pack without argv: makes latents from clips.
//
// There is one shard of latents for each shard of clips and split of its samples, DIR/SPLIT/X.tar
// (data/latents.h). Samples are worked on in parallel, shards written one after the other, in the
// order of the input.
//
// Resume: beside each shard stands X.json, written last: what the shard was made from (options,
// hashes of the tars), its index, sums for the statistics, its errors. If that still holds, the
// shard is kept and its errors are reported again; else it is remade. Shards that left the input
// are removed. DIR/pack.json holds the options; a folder of other options, or with a shard of the
// same name from elsewhere, is refused, or emptied with `force`. index.jsonl and latents.json are
// written at the end, shards sorted by name, so they do not depend on the order of the input.
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
  /// The arguments of shard/shard_input.h.
  std::vector<std::string> inputs;
  std::string output;
  bool force = false;
  shard::ReadLimits limits;
  models::TokenizerConfig tokenizer;
  /// The tokenizer's device. A tokenizer from a folder rounds differently on a GPU; a builtin one
  /// gives the same bytes.
  Device device = Device::cpu;
  std::uint64_t tokenizer_memory = 0;  ///< of models::make_tokenizer()
  /// Not null: it computes in these workers, on `device`, and their cards' video engines decode as
  /// `hwaccel` says (media::choose_hardware), unless `clip` has its own hardware. Their service is
  /// that of pack/clip_encoder.h.
  workers::StageModels* workers = nullptr;
  std::string hwaccel = "none";
  /// Size, length, crop; time_step and multiple are the tokenizer's time factor, and twice its
  /// space factor.
  data::PixelOptions clip;
  std::string report;  ///< HTML file; empty: none
};

/// Writes a record for each shard to standard output, when it is durable. Returns the number of
/// recorded errors. Throws Error when nothing could be packed; Error{usage} for bad options or a
/// folder of other options; Stopped.
long run(const PackOptions& options, share::Slots& slots, Progress& progress,
         io::ManifestWriter& manifest);

}  // namespace vfm::pack
