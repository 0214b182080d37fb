// Makes the text of --version.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace vfm::cli {

/// Returns a first line such as "vfm-clip 0.1.0", and lines with features, compiler and libraries.
std::string version_text(const std::string& program, const std::string& details);

}  // namespace vfm::cli
