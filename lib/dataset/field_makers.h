// Gives the command that makes a field or vector, for messages if it is missing. Thread-safety:
// pure function.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace vfm::dataset {

/// Returns the command that makes `name`, such as "vfm-embed --aesthetic FILE", or "" if no command
/// of vfm makes `name`.
std::string maker_of(std::string_view name);
/// Returns the names of fields and vectors that vfm makes, except families with a part chosen by
/// the user, like "concept_*".
std::vector<std::string> made_names();

}  // namespace vfm::dataset
