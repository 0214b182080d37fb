// --part: the option by which commands on many machines share out one work (parts/part_choice.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/option_table.h"
#include "parts/part_choice.h"

namespace vfm::cli {

/// Returns the kind of this node, from VFM_NODE_KIND (parts::node_kind_of()).
std::string node_kind();

/// --part I/N|env|auto|next.
struct PartOptions {
  parts::PartChoice choice;
  /// Adds the option to the group "Work". If it is given, reads the environment.
  OptionRow& add(Options& options);
};

}  // namespace vfm::cli
