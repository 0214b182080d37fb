// Lists the packs that training makes from a folder of latents. Only the folder's index is read.
// Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "data/latents.h"
#include "data/packing.h"
#include "io/manifest.h"

namespace vfm::pack {

struct PlanOptions {
  std::string directory;
  std::string split = "train";
  data::PackingOptions packs;
  data::Patch patch;
  std::uint64_t seed = 0;
  std::uint32_t epoch = 0;
};

/// Writes a record for each pack of an epoch: {"kind":"pack","pack":0,"tokens":187,"samples":
/// [{"key":…,"shard":"train/X.tar","offset":0,"tokens":45},…]}. The field "plan" of the end record
/// has the totals. Throws Error{usage} if the folder has no latents, or if a sample does not fit
/// into a pack.
void write_plan(const PlanOptions& options, io::ManifestWriter& manifest);

/// Returns the first packs and the totals as lines of text. Throws what write_plan() throws.
std::string plan_table(const PlanOptions& options);

}  // namespace vfm::pack
