// In which bin samples stand: by size and duration, and by the members that they have.
// Pure; thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "curate/binning.h"
#include "dataset/item.h"

namespace vfm::dataset {

/// Extensions as a part of a folder's name: as they are where that is short and says which they
/// are, with '-' for the dot that a name cannot have; else by a hash.
std::string name_part(const std::vector<std::string>& extensions);

/// By size and duration alone: Shape::bin.
std::string bin_of(const Item& item, const curate::BinEdges& edges);

/// The bin of each shape; empty for those that are not `used`. Samples of a shard have the same
/// members: where the shapes that are used differ in them, those that lack some of what others have
/// are in a bin of their own: "..._without_txt".
std::vector<std::string> bins_of_shapes(const Shapes& shapes, const std::vector<bool>& used);

}  // namespace vfm::dataset
