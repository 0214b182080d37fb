// Makes the latent samples that training reads: the windows of a clip, with the clip's text.
// Thread-safety: pure functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/held_bytes.h"
#include "base/held_json.h"
#include "data/latents.h"
#include "models/channel_sums.h"
#include "models/tokenizer.h"
#include "pack/clip_encoder.h"
#include "shard/sample.h"

namespace vfm::pack {

using models::ChannelSums;

struct LatentOutput {
  shard::Sample sample;   ///< latent.npy or codes.npy, text.npy, json
  data::Entry entry;      ///< lacks shard and row
  ChannelSums sums;       ///< sums of the stored latent (fp16); unset for codes
  HeldJson text_encoder;  ///< null if the sample has no text embedding
};

using vfm::held_bytes;
/// See base/held_bytes.h.
std::size_t held_bytes(const LatentOutput& output);

struct ClipLatents {
  std::vector<LatentOutput> windows;
  data::FrameCount frames;
};

/// Returns the latents of a clip. `encoder` must use `tokenizer`. Throws Error, which names the
/// member, if the clip cannot be decoded or its text.npy is malformed.
ClipLatents make_latents(const shard::Sample& sample, const models::VideoTokenizer& tokenizer,
                         const LatentEncoder& encoder);

}  // namespace vfm::pack
