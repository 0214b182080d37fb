// The second pass of vfm-shard in parts, on any number of machines: `vfm-shard --plan` writes the
// shards of a plan (dataset/planned.h), and `vfm-shard join` then the files of the whole dataset.
//
// Part I of N writes the shards whose place in the plan modulo N is I. Its files are in
// DIR/parts/shard/. Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/progress.h"
#include "io/manifest.h"
#include "parts/part_choice.h"
#include "share/slots.h"

namespace vfm::dataset {

/// The tool (parts/part_run.h) that writes the shards of a plan.
inline constexpr const char* kWriteTool = "shard";

/// Writes the shards of the plan in the file `path` that `choice` gives this process, into the
/// file's folder, and a record of each. Throws what ShardWriter::write() and shard::for_each_part()
/// throw.
long write_planned(const std::string& path, const parts::PartChoice& choice, share::Slots& slots,
                   Progress& progress, io::ManifestWriter& manifest);

/// Writes the files that describe all shards of a dataset (write_dataset_files()), and a record of
/// each shard to `manifest`, which may be null. Does nothing again if all is done. Throws Error if
/// a part is missing, or of another plan.
void join_planned(const std::string& directory, io::ManifestWriter* manifest);

}  // namespace vfm::dataset
