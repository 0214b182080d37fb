// Joins what the parts of a work wrote (shard/part_output.h), after all parts are complete.
//
// The results do not depend on the number of parts. Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "parts/part_marker.h"

namespace vfm::shard {

/// Returns those of `tools`, such as "caption", that have parts in the folder. Throws Error, which
/// names the parts, if parts of them are not complete.
std::vector<std::string> complete_tools(const std::string& directory,
                                        const std::vector<std::string>& tools);

/// Calls `use` with the folder and the marker of each part of a tool, in order. Throws Error if a
/// marker is missing or damaged.
void for_each_marker(
    const std::string& directory, const std::string& tool,
    const std::function<void(const std::string& folder, const parts::PartMarker& marker)>& use);

/// Calls `read`, which takes what `path` says, a file that the part in `folder` wrote. Throws
/// Error, which says to do the part again, in place of an Error or an exception of the JSON
/// library.
void read_of_part(const std::string& folder, const std::string& path,
                  const std::function<void()>& read);

/// Writes the errors of all parts of a tool to `path`, in order of their bytes, each once. Without
/// errors, removes `path`.
void join_errors(const std::string& directory, const std::string& tool, const std::string& path);
/// Calls `use` with each error record of the tool's parts. Its "input" is a text.
void for_each_part_error(const std::string& directory, const std::string& tool,
                         const std::function<void(const Json& error)>& use);

/// Calls `use` with each record in the manifests of the tool's parts, in order of their paths. The
/// files of a record begin with `directory`.
void for_each_joined_record(const std::string& directory, const std::string& tool,
                            const std::function<void(const Json& record)>& use);

/// Returns a copy of a record whose files are named relative to `directory`.
Json named_in(const std::string& directory, const Json& record);

}  // namespace vfm::shard
