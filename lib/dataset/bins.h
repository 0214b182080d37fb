// The bins of samples: by size and duration, and by their members.
// Pure; thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "curate/binning.h"
#include "dataset/item.h"

namespace vfm::dataset {

/// Extensions as a part of a folder's name: the extensions themselves if short and unambiguous,
/// with '-' for dots; else a hash.
std::string name_part(const std::vector<std::string>& extensions);

/// By size and duration only: Shape::bin.
std::string bin_of(const Item& item, const curate::BinEdges& edges);

/// The bin of each shape; empty for those that are not `used`. Samples of a shard have the same
/// members: if used shapes differ in them, shapes that lack some are in separate bins:
/// "..._without_txt".
std::vector<std::string> bins_of_shapes(const Shapes& shapes, const std::vector<bool>& used);

}  // namespace vfm::dataset
