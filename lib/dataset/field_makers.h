// Commands that make a field or vector, for messages about a missing field. Thread-safety: pure
// functions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace vfm::dataset {

/// Returns the command that makes `name`, such as "vfm-embed --aesthetic FILE", or "" if no command
/// of vfm makes `name`.
std::string maker_of(std::string_view name);
/// Returns the names of fields and vectors that vfm makes. Names with a part chosen by the user,
/// like "concept_*", are not included.
std::vector<std::string> made_names();

}  // namespace vfm::dataset
