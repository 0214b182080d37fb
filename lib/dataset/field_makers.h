// Names the command that makes a field or vector that an option names and no sample has.
// Thread-safety: pure function.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace vfm::dataset {

/// "vfm-embed --aesthetic FILE"; "": no command of vfm makes it.
std::string maker_of(std::string_view name);
/// The names that vfm makes, without the families of names that the user chooses, as "concept_*".
std::vector<std::string> made_names();

}  // namespace vfm::dataset
