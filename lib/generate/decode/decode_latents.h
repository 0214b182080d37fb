// vfm-generate decode: makes clips from the latents that --latents-only wrote.
//
// A clip made in two stages has the same bytes and address as a clip made in one.
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
  /// Manifest records of kind "latents", .latents.safetensors files with their records beside them,
  /// or the .latents.json records; "-": lines on standard input.
  std::vector<std::string> inputs;
  std::string model;      ///< folder of the model with the tokenizer; empty: as the record says
  std::string tokenizer;  ///< folder of the tokenizer; empty: as the model says
  std::string output;     ///< folder, or "-": Y4M on standard output
  bool force = false;
  std::string encoder;         ///< name in FFmpeg; empty: the record's encoder, or the default
  std::optional<int> quality;  ///< 0..51; none: the record's
  Device device = Device::cpu;
  /// Type of the tokenizer's computation; none: as its model says.
  std::optional<DType> compute = {};
  std::uint64_t tokenizer_memory = 0;  ///< bytes, as for models::make_tokenizer()
};

/// The same as generate_clips(), for latents. A collective. Rank 0 reads, deals the latents in
/// turn, receives the clips of the other ranks and writes all clips. All ranks decode a latent
/// together if it exceeds the memory of one rank, and also the last latents if there are fewer than
/// ranks. Throws Error{usage} for a stream from several ranks.
long decode_latents(const DecodeJob& job, dist::World& world, share::Slots& slots,
                    Progress& progress, io::ManifestWriter& manifest);

}  // namespace vfm::generate
