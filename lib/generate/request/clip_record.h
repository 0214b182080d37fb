// Records of how a clip was made, and the check that refuses another model. Thread-safety: any
// thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/json_fwd.h"
#include "generate/request/named_request.h"

namespace vfm::generate {

/// Everything that decides the request's latent. The hash of this is the latent's address.
Json describe_latent(const ModelInUse& in_use, const NamedRequest& request);

/// The same for the clip as a file of `output`, with the encoder and its quality. For a stream it
/// equals describe_latent().
Json describe_clip(const ModelInUse& in_use, const NamedRequest& request, const ClipFolder& output);

/// Adds the paths of the model's adapters to a record.
void add_adapter_paths(Json& record, const ModelInUse& in_use);

/// A manifest record as input asks for exactly the clip that it describes. Throws Error if that
/// clip was made with other weights or computed differently, since the new clip would differ.
void refuse_other_model(const ModelInUse& in_use, const MadeBy& made_by);

}  // namespace vfm::generate
