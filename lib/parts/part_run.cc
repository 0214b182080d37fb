// SPDX-License-Identifier: Apache-2.0
#include "parts/part_run.h"

#include <fmt/core.h>

#include "base/error.h"

namespace vfm::parts {

struct Part::State {};
struct PartRun::State {};

std::string part_name(int part) {
  return fmt::format("{:05}", part);
}
std::string part_folder(const std::string& directory, const std::string& tool, int part) {
  return directory + "/parts/" + tool + "/" + part_name(part);
}

}  // namespace vfm::parts
