// What ranks that decode latents (generate/decode_latents.h) give each other: rank 0 deals lines of
// the input, and gets clips back, or latents that all ranks are to decode together.
//
// Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/held_json.h"
#include "generate/frames.h"
#include "io/manifest.h"
#include "models/tokenizer.h"

namespace vfm::generate {

/// A line of the input, or why it is none.
struct DealtLatents {
  io::Record record;
  std::string where, error;
};

struct DecodedLatents {
  DealtLatents input;
  std::string error, name, mp4;  ///< mp4: empty if the clip was there
  Cause cause = Cause::line;     ///< of the error
  HeldJson record;
  double seconds = 0;  ///< that it took
  /// Not decoded yet: all ranks are to do so together, with the tokenizer of the model's folder.
  bool together = false;
  std::string folder;
  Latent latent;                                      ///< of such ones, and for the stream
  const models::VideoTokenizer* tokenizer = nullptr;  ///< for the stream
};

/// Some lines for a rank. `more`: others follow, in another round. `few`: the round has fewer lines
/// than there are ranks.
std::string pack_dealt(const std::vector<DealtLatents>& inputs, bool more, bool few);
std::vector<DealtLatents> unpack_dealt(std::string_view bytes, bool& more, bool& few);

/// What became of them, without the inputs, which rank 0 has.
std::string pack_decoded(const std::vector<DecodedLatents>& results);
std::vector<DecodedLatents> unpack_decoded(std::string_view bytes,
                                           std::vector<DealtLatents> inputs);

/// Values that all ranks decode together, and by which model.
struct SharedDecoding {
  std::string folder;  ///< empty: there is nothing more to do
  std::vector<float> values;
  int frames = 0, height = 0, width = 0;
};
std::string pack_shared(const SharedDecoding& work);
SharedDecoding unpack_shared(std::string_view bytes);

}  // namespace vfm::generate
