// Messages between ranks that decode latents (generate/decode/decode_latents.h). Rank 0 deals lines
// of the input. It receives clips, or latents that all ranks must decode together.
//
// Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/held_json.h"
#include "generate/decode/frames.h"
#include "io/manifest.h"
#include "models/tokenizer.h"

namespace vfm::generate {

/// A line of the input, or its error.
struct DealtLatents {
  io::Record record;
  std::string where, error;
};

struct DecodedLatents {
  DealtLatents input;
  std::string error, name, mp4;  ///< mp4: empty if the clip already existed
  Cause cause = Cause::line;     ///< cause of the error
  HeldJson record;
  double seconds = 0;  ///< time to decode it
  /// Not decoded yet: all ranks must decode it together, with the tokenizer of the model in
  /// `folder`.
  bool together = false;
  std::string folder;
  Latent latent;                                      ///< if `together`, and for the stream
  const models::VideoTokenizer* tokenizer = nullptr;  ///< for the stream
};

/// Packs lines for a rank. `more`: another round follows. `few`: the round has fewer lines than
/// ranks.
std::string pack_dealt(const std::vector<DealtLatents>& inputs, bool more, bool few);
std::vector<DealtLatents> unpack_dealt(std::string_view bytes, bool& more, bool& few);

/// Packs results without their inputs, which rank 0 has.
std::string pack_decoded(const std::vector<DecodedLatents>& results);
std::vector<DecodedLatents> unpack_decoded(std::string_view bytes,
                                           std::vector<DealtLatents> inputs);

/// Latent values that all ranks decode together, and the model.
struct SharedDecoding {
  std::string folder;  ///< folder of the model; empty: no more work
  std::vector<float> values;
  int frames = 0, height = 0, width = 0;
};
std::string pack_shared(const SharedDecoding& work);
SharedDecoding unpack_shared(std::string_view bytes);

}  // namespace vfm::generate
