// vfm-generate decode: makes clips from the latents of --latents-only.
//
// A clip that is made in two stages has the same bytes and address as one that is made in one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/progress.h"
#include "dist/world.h"
#include "io/manifest.h"
#include "share/slots.h"
#include "tensor/tensor.h"

namespace vfm::generate {

struct DecodeJob {
  /// Manifest records of kind "latents", or .latents.safetensors files, whose records lie beside
  /// them, or these .latents.json; "-": lines on standard input.
  std::vector<std::string> inputs;
  std::string model;      ///< folder of the model with the tokenizer; empty: the record's
  std::string tokenizer;  ///< folder of that tokenizer; empty: where the model says
  std::string output;     ///< folder, or "-": Y4M on standard output
  bool force = false;
  std::string encoder;         ///< FFmpeg's name; empty: the record's, or the default one
  std::optional<int> quality;  ///< 0..51; nothing: the record's
  Device device = Device::cpu;
  std::optional<DType> compute = {};   ///< of the tokenizer; nothing: as its model says
  std::uint64_t tokenizer_memory = 0;  ///< of models::make_tokenizer()
};

/// As generate_clips(). A collective: rank 0 reads, deals the latents in turn and writes the clips,
/// which it gets from the others. All ranks together decode latents that exceed one's memory, and
/// the last latents if there are fewer than ranks. Throws Error{usage} for a stream from several
/// ranks.
long decode_latents(const DecodeJob& job, dist::World& world, share::Slots& slots,
                    Progress& progress, io::ManifestWriter& manifest);

}  // namespace vfm::generate
