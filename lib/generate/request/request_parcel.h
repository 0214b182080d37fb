// Requests and results as bytes, to pass between ranks.
// Thread-safety: free functions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/held_json.h"
#include "generate/decode/frames.h"
#include "generate/request/named_request.h"

namespace vfm::generate {

/// The next item of the input: a request, or the error why there is none.
struct Asked {
  std::shared_ptr<const NamedRequest> request;
  std::string where, error;   ///< place in the input; error: empty if there is a request
  Cause cause = Cause::line;  ///< cause of the error
};

/// The result of a request.
struct Result {
  Asked asked;
  HeldJson record;     ///< manifest record
  bool made = true;    ///< false: the clip already existed
  Latent latent;       ///< only for the stream
  double seconds = 0;  ///< time to make it
};

/// A request with the pixels, noise and embeddings of its files, so that the receiving rank reads
/// no file.
std::string pack_request(const NamedRequest& request);
NamedRequest unpack_request(std::string_view bytes);

/// A result without its request, which the other rank has.
std::string pack_result(const Result& result);
/// Unpacks into `result`, which has its request already.
void unpack_result(std::string_view bytes, Result& result);

}  // namespace vfm::generate
