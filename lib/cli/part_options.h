// --part: the option by which commands on many machines share out one work (parts/part_choice.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/option_table.h"
#include "parts/part_choice.h"

namespace vfm::cli {

/// --part I/N|env|auto.
struct PartOptions {
  parts::PartChoice choice;
  /// Adds the option to the group "Work". If it is given, reads the environment.
  OptionRow& add(Options& options);
};

}  // namespace vfm::cli
