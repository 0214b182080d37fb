// The folder of a run, on a disk or in a bucket, and which files in it belong to vfm-train. One
// program at a time writes it (io/folder_lock.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace vfm::train {

/// The first line of a run's recipe.yaml, which is the first file that a run writes.
inline constexpr const char* kRecipeHead =
    "# The recipe of this run, as vfm-train understood it.\n";

/// The absolute path of a folder with a slash at the end. Links are resolved as far as the path
/// exists. An address stays as it is.
std::filesystem::path whole_path(const std::filesystem::path& name);

/// Whether `out` has a checkpoint from which a run there continues; false with `force`.
bool is_begun(const std::string& out, bool force);

/// Throws Error{usage} if `run` holds files of other programs under the names of ours.
void refuse_foreign_files(const std::string& run);
/// Writes errors.jsonl: samples that could not be read, key -> reason. Without failures there is no
/// such file.
void write_errors(const std::string& run, const std::map<std::string, std::string>& failures);
/// Removes the files of an earlier run, and no others.
void clear_run(const std::string& run);

}  // namespace vfm::train
