// The folder of a run: which files in it are vfm-train's. One program at a time writes it
// (io/folder_lock.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace vfm::train {

/// The first line of a run's recipe.yaml, which is the first file that a run writes.
inline constexpr const char* kRecipeHead =
    "# The recipe of this run, as vfm-train understood it.\n";

/// A folder's whole name, with a slash at the end: by any links; what is gone as it was written.
std::filesystem::path whole_path(const std::filesystem::path& name);

/// Whether a run that is to be kept in `out` goes on at a checkpoint there; not with `force`.
bool is_begun(const std::string& out, bool force);

/// Throws Error{usage} if `run` holds files that are not ours under the names of ours.
void refuse_foreign_files(const std::string& run);
/// errors.jsonl: samples that could not be read, key -> why. None: there is no such file.
void write_errors(const std::string& run, const std::map<std::string, std::string>& failures);
/// Removes what an earlier run left, and nothing else that may lie there.
void clear_run(const std::string& run);

}  // namespace vfm::train
