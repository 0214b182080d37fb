// Makes a folder of latents complete, after all parts of vfm-pack are.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "io/manifest.h"

namespace vfm::pack {

/// Writes errors.jsonl and the files of PackFolder::finish(), and then the record of each shard of
/// latents to `manifest`, in order of paths. With `prune`, removes shards of vfm-pack that no part
/// wrote. Otherwise they are not in the index. Does nothing again if all is done. Throws Error if a
/// part is not complete, if another program has locked the folder, and what PackFolder::finish()
/// throws. Throws Stopped.
void join_latents(const std::string& directory, bool prune, io::ManifestWriter& manifest);

}  // namespace vfm::pack
