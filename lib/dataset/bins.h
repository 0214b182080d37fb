// Assigns samples to bins by size, duration and members. Thread-safety: pure functions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "curate/binning.h"
#include "dataset/item.h"

namespace vfm::dataset {

/// Returns the extensions as part of a folder's name, with '-' for dots. If the name would be long
/// or ambiguous, returns a hash.
std::string name_part(const std::vector<std::string>& extensions);

/// Returns the bin by size and duration alone (Shape::bin).
std::string bin_of(const Item& item, const curate::BinEdges& edges);

/// Returns the bin of each shape. A shape gets an empty name if its value in `used` is false. All
/// samples of a shard have the same members. If a shape lacks a member that another used shape has,
/// the shape gets a separate bin, such as "..._without_txt".
std::vector<std::string> bins_of_shapes(const Shapes& shapes, const std::vector<bool>& used);

}  // namespace vfm::dataset
