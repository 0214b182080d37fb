// vfm-pack without argv: clips to latents, and the packs that training would make of them.
//
// One shard of latents for each shard of clips and split of its samples, DIR/SPLIT/X.tar
// (data/latents.h). Samples are worked on in parallel, shards written one after the other, in the
// order of the input.
//
// Resume: beside each shard stands X.json, written last: what the shard was made from (options,
// hashes of the tars), its index, sums for the statistics, its errors. If that still holds, the
// shard is kept and its errors are reported again; else it is remade. Shards that the input no
// longer has are removed. DIR/pack.json holds the options; a folder of other options, or with a
// shard of that name from elsewhere, is refused, or with `force` emptied. index.jsonl and
// latents.json are written at the end, shards sorted by name, so they do not depend on the order of
// the input.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/slots.h"
#include "cards/stage_models.h"
#include "data/clip_pixels.h"
#include "data/latents.h"
#include "data/packing.h"
#include "io/manifest.h"
#include "models/tokenizer.h"
#include "shard/reader.h"
#include "tensor/tensor.h"

namespace vfm::pack {

struct PackOptions {
  /// As shard/shard_input.h takes them.
  std::vector<std::string> inputs;
  std::string output;
  bool force = false;
  shard::ReadLimits limits;
  models::TokenizerConfig tokenizer;
  /// Where the tokenizer computes. One from a folder rounds otherwise on a GPU; the bytes of a
  /// builtin one do not depend on it.
  Device device = Device::cpu;
  std::uint64_t tokenizer_memory = 0;  ///< of models::make_tokenizer()
  /// Not null: it computes there, on `device`, and a card's video engine decodes what it then
  /// encodes as `hwaccel` says (media::choose_hardware), where `clip` has no hardware itself. Their
  /// services are those of pack/clip_encoder.h.
  cards::StageModels* workers = nullptr;
  std::string hwaccel = "none";
  /// Size, length, crop; time_step and multiple are the tokenizer's time factor, and twice its
  /// space factor.
  data::ClipOptions clip;
  std::string report;  ///< HTML file; empty: none
};

/// A record a shard on standard output, when it is durable. Returns the number of recorded errors.
/// Throws Error when nothing could be packed; Error{usage} for bad options and a folder of others;
/// Stopped.
long run(const PackOptions& options, Slots& slots, Progress& progress,
         io::ManifestWriter& manifest);

struct PlanOptions {
  std::string directory;  ///< of latents
  std::string split = "train";
  data::PackOptions packs;
  data::Patch patch;
  std::uint64_t seed = 0;
  std::uint32_t epoch = 0;
};

/// Prints the packs of an epoch as lines of text: "# pack key shard offset tokens", one line a
/// sample, "# fill ... ", tab separated, on standard output. Throws Error{usage} if the folder
/// holds no latents, or a sample does not fit.
void print_plan(const PlanOptions& options);

}  // namespace vfm::pack
