// --part: the options by which commands on many machines share out one work (parts/part_choice.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/option_table.h"
#include "parts/part_choice.h"

namespace vfm::cli {

/// Returns the kind of this node, from VFM_NODE_KIND (parts::node_kind_of()).
std::string node_kind();

/// --part I/N|env|auto|next, --follow DURATION, --waiting SIZE.
struct PartOptions {
  parts::PartChoice choice;
  /// Adds --part. If it is given, reads the environment.
  OptionRow& add(Options& options);
  /// Add --follow and --waiting after --part.
  void add_follow(Options& options);
  void add_waiting(Options& options);
  /// For Tool::winds_up(): with --part, SIGUSR1 ends the work after the part at hand.
  bool winds_up() const { return !choice.whole(); }
  /// Throws Error{usage} for --waiting with a fixed part. Call it in Tool::check().
  void check() const;
};

}  // namespace vfm::cli
