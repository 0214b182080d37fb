// The part of a recipe about ranks (vfm-recipe(5)). It does not belong to the run's identity: a
// resumed run may have other values.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "dist/layout.h"

namespace vfm::train {

class FieldList;

/// Adds the section 'parallel'. Its dp is open: the ranks decide it.
void add_parallel_fields(FieldList& list, dist::Layout& parallel);
/// The value of 'parallel.shard'.
std::string_view shard_name(dist::ShardKind kind);
/// "parallel.tp=2", ...: the settings that make `from` into `to`, in the order of the fields.
std::vector<std::string> differing_settings(dist::Layout from, dist::Layout to);

}  // namespace vfm::train
