// A clip's record of how it was made, and the check for another model. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/json_fwd.h"
#include "generate/request/named_request.h"

namespace vfm::generate {

/// All that decides the request's latent: its hash is the latent's address.
Json describe_latent(const ModelInUse& in_use, const NamedRequest& request);

/// The same for the clip as a file of `output`: with the encoder and its quality. For a stream it
/// is describe_latent().
Json describe_clip(const ModelInUse& in_use, const NamedRequest& request, const ClipFolder& output);

/// Adds the paths of the model's adapters to a record.
void add_adapter_paths(Json& record, const models::LoadedModel& model);

/// A manifest record asks for exactly the clip that it describes. Throws Error if that was made
/// with other weights, or computed differently, since the clip would differ.
void refuse_other_model(const ModelInUse& in_use, const MadeBy& made_by);

}  // namespace vfm::generate
