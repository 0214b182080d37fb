// Makes the latent samples that training reads: the windows of a clip, with the clip's text.
// Thread-safety: pure functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/held_bytes.h"
#include "base/held_json.h"
#include "data/channel_sums.h"
#include "data/latents.h"
#include "models/tokenizer.h"
#include "pack/clip_encoder.h"
#include "shard/sample.h"

namespace vfm::pack {

using data::ChannelSums;

struct LatentOutput {
  shard::Sample sample;   ///< Sample with json, text.npy, and latent.npy or codes.npy.
  data::Entry entry;      ///< Entry of the sample, without shard and row.
  ChannelSums sums;       ///< Sums of the stored latent (fp16), unset for codes.
  HeldJson text_encoder;  ///< Text encoder, or null for a sample without text.
};

using vfm::held_bytes;
/// Returns the memory of `output` in bytes (base/held_bytes.h).
std::size_t held_bytes(const LatentOutput& output);

struct ClipLatents {
  std::vector<LatentOutput> windows;
  data::FrameCount frames;
};

/// Returns the latents of a clip. `encoder` must use `tokenizer`. If the clip cannot be decoded or
/// its text.npy is malformed, throws Error with the name of the member.
ClipLatents make_latents(const shard::Sample& sample, const models::VideoTokenizer& tokenizer,
                         const LatentEncoder& encoder);

}  // namespace vfm::pack
