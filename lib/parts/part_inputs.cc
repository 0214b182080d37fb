// SPDX-License-Identifier: Apache-2.0
#include "parts/part_inputs.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/error.h"
#include "base/xxh3.h"
#include "io/file.h"
#include "io/store.h"
#include "parts/part_run.h"
#include "parts/parts_look.h"

namespace vfm::parts {

std::string PartInputs::message(const std::string& directory) const {
  constexpr std::size_t kMostNamed = 5;
  if (missing.empty()) return "";
  std::string names;
  for (std::size_t i = 0; i < std::min(missing.size(), kMostNamed); ++i)
    names += fmt::format("{}{}", i == 0 ? "" : ", ", missing[i]);
  if (missing.size() > kMostNamed)
    names += fmt::format(" and {} more", missing.size() - kMostNamed);
  return fmt::format("{} of the {} parts of '{}' {} not complete: {}", missing.size(), parts,
                     directory, missing.size() == 1 ? "is" : "are", names);
}

std::optional<PartInputs> part_inputs(const std::string& directory, const std::string& tool) {
  const std::optional<int> parts = count_parts(directory, tool);
  if (!parts) return std::nullopt;
  const std::unique_ptr<io::Store> store = open_parts(directory);
  PartInputs inputs;
  inputs.parts = *parts;
  const std::vector<bool> marked = marked_parts(*store, directory, tool, *parts);
  for (int part = 0; part < *parts; ++part) {
    if (marked[static_cast<std::size_t>(part)])
      inputs.manifests.push_back(
          io::join_path(part_folder(directory, tool, part), "manifest.jsonl"));
    else
      inputs.missing.push_back(part);
  }
  return inputs;
}

int part_of_shard(std::string_view path, int parts) {
  const std::string name = io::base_name(path);
  return static_cast<int>(xxh3_64(name.data(), name.size()) % static_cast<unsigned>(parts));
}

}  // namespace vfm::parts
