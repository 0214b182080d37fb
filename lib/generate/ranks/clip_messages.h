// The messages between the ranks, or between the program and the workers, that make clips
// (generate/ranks/clip_wire.h).
// Thread-safety: values.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/held_json.h"
#include "generate/decode/frames.h"
#include "generate/ranks/clip_wire.h"
#include "generate/request/named_request.h"
#include "io/manifest.h"

namespace vfm::generate {

/// The next item of the input: a request, or the error why there is none. It is sent with the
/// pixels, noise and embeddings of its files, so that the receiver reads no file.
struct Asked {
  std::shared_ptr<NamedRequest> request;
  std::string where, error;   ///< place in the input; error: empty if there is a request
  Cause cause = Cause::line;  ///< cause of the error
  std::uint64_t place = 0;    ///< number in the input. It is not sent
};

/// The result of a request. It is sent without the request, which the receiver has.
struct Result {
  Asked asked;
  HeldJson record;     ///< manifest record
  bool made = true;    ///< false: the clip already existed
  double seconds = 0;  ///< time to make it
  Latent latent;       ///< only for the stream
  /// For the stream; of the receiver.
  const models::VideoTokenizer* tokenizer = nullptr;
};

/// A line of `vfm-generate decode`, or its error.
struct DealtLatents {
  io::Record record;
  std::string where, error;
};

/// The result of such a line. It is sent without the input, which the receiver has.
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

void fields(ClipWire& wire, Latent& latent);
void fields(ClipWire& wire, Prompt& prompt);
void fields(ClipWire& wire, ModelInUse& in_use);
void fields(ClipWire& wire, NamedRequest& request);
void fields(ClipWire& wire, Asked& asked);
void fields(ClipWire& wire, Result& result);
void fields(ClipWire& wire, DealtLatents& input);
void fields(ClipWire& wire, DecodedLatents& result);

}  // namespace vfm::generate
