// What the record of a clip says of how it was made, and whether another model made it.
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/json_fwd.h"
#include "generate/named_request.h"

namespace vfm::generate {

/// All that decides the request's latent: its hash is the latent's address.
Json describe_latent(const ModelInUse& in_use, const NamedRequest& request);

/// The same for the clip as a file of `output`: with the encoder and its quality. For a stream it
/// is describe_latent().
Json describe_clip(const ModelInUse& in_use, const NamedRequest& request, const ClipOutput& output);

/// Where the adapters of the model are from, into a record.
void add_adapter_paths(Json& record, const models::LoadedModel& model);

/// A manifest record asks for exactly the clip that it describes. Throws Error if that was made by
/// other weights, or computed in another way, since the clip would be another one.
void refuse_other_model(const ModelInUse& in_use, const MadeBy& made_by);

}  // namespace vfm::generate
