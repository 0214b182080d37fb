// SPDX-License-Identifier: Apache-2.0
#include "parts/part_inputs.h"

#include "base/xxh3.h"
#include "io/file.h"

namespace vfm::parts {

int part_of_shard(std::string_view path, int parts) {
  const std::string name = io::base_name(path);
  return static_cast<int>(xxh3_64(name.data(), name.size()) % static_cast<unsigned>(parts));
}

}  // namespace vfm::parts
