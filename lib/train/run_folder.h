// The folder of a run: who may write it, and which files in it are vfm-train's.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "io/file.h"

namespace vfm::train {

/// The first line of a run's recipe.yaml, which is the first file that a run writes.
inline constexpr const char* kRecipeHead =
    "# The recipe of this run, as vfm-train understood it.\n";

/// A lock on the folder itself, made if need be: two programs that write one run would spoil both.
/// Throws Error if another has it.
io::File lock_run(const std::string& run);
/// Throws Error{usage} if `run` holds files that are not ours under the names of ours.
void refuse_foreign_files(const std::string& run);
/// errors.jsonl: samples that could not be read, key -> why. None: there is no such file.
void write_errors(const std::string& run, const std::map<std::string, std::string>& failures);
/// Removes what an earlier run left, and nothing else that may lie there.
void clear_run(const std::string& run);

}  // namespace vfm::train
