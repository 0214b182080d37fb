// The first pass of vfm-shard in parts, on any number of machines: `vfm-shard plan --part`.
//
// Part I reads its shards and writes DIR/parts/plan/0000I/scan.bin (dataset/scanned.h). The plan of
// the dataset then takes what all parts found, in the order of the input, so the number of parts
// does not change the dataset. Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/progress.h"
#include "dataset/dataset.h"
#include "dataset/scan.h"
#include "io/error_log.h"
#include "io/manifest.h"
#include "parts/part_choice.h"
#include "share/slots.h"

namespace vfm::dataset {

/// Scans the parts of the input that `choice` gives this process, and writes a record of each.
/// Returns the number of faults that may pass. Throws what scan_shards() and shard::for_each_part()
/// throw.
long scan_parts(const ShardOptions& options, const parts::PartChoice& choice, share::Slots& slots,
                Progress& progress, io::ManifestWriter& manifest);

/// Returns whether parts of a scan were begun in the folder of a dataset.
bool has_scan_parts(const std::string& directory);

/// Gathers what the parts found. Returns what scan_shards() returns for the whole input. Throws
/// Error if a part is missing, or was scanned with other inputs or options.
Scan gather_parts(const ShardOptions& options, Progress& progress, io::ErrorLog& errors);

}  // namespace vfm::dataset
