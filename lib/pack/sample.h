// One clip with its text, as the latent sample that training reads.
// Thread-safety: pure functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "data/clip_pixels.h"
#include "data/latents.h"
#include "models/tokenizer.h"
#include "shard/sample.h"

namespace vfm::pack {

/// Sums over the latent pixels of samples, for the mean and standard deviation of each channel.
/// Always added in one order, so that the rounding is the same in every run.
struct ChannelSums {
  std::vector<double> sum, squares;
  double count = 0;  ///< latent pixels

  void add(const ChannelSums& other);
  Json to_json() const;
  /// Throws Error unless it is of `channels` channels.
  static ChannelSums from_json(const Json& json, int channels);
};

struct LatentOutput {
  shard::Sample sample;  ///< latent.npy or codes.npy, text.npy, json
  data::Entry entry;     ///< without shard and row
  ChannelSums sums;      ///< of the latent as stored, rounded to fp16; none of codes
  Json text_encoder;     ///< null if the sample has no text embedding
};

/// Throws Error, naming the member, if the clip cannot be decoded or its text.npy is malformed.
LatentOutput make_latent(const shard::Sample& sample, const models::VideoTokenizer& tokenizer,
                         const data::ClipOptions& options);

}  // namespace vfm::pack
