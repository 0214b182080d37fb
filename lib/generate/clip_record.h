// What the record of a clip says of how it was made, and whether another model made it.
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/json_fwd.h"
#include "generate/named_request.h"

namespace vfm::generate {

/// All that decides the request's latent: its hash is the latent's address.
Json describe_latent(const ModelInUse& in_use, const NamedRequest& request);

/// The same of the clip in a file of `output`: with the encoder and its quality. Of a stream as
/// describe_latent().
Json describe_clip(const ModelInUse& in_use, const NamedRequest& request, const ClipOutput& output);

/// Where the adapters of the model are from, into a record.
void add_adapter_paths(Json& record, const models::LoadedModel& model);

/// A record of the manifest asks for the clip that it describes: with other weights, or computed in
/// another way, it would be another one. Throws Error for one that was made so.
void refuse_other_model(const ModelInUse& in_use, const MadeBy& made_by);

}  // namespace vfm::generate
