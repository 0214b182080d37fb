// SPDX-License-Identifier: Apache-2.0
#include "cli/version.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <CLI/Version.hpp>

#include "base/json.h"
#include "vfm_config.h"

namespace vfm::cli {

std::string version_text(const std::string& program, const std::string& details) {
  const auto yes_no = [](int have) { return have ? "yes" : "no"; };
  std::string text = fmt::format("{} {}\n", program, VFM_VERSION);
  text += fmt::format("features: video {}, MPI {}, CUDA {}, polite waiting {}\n",
                      yes_no(VFM_HAVE_MEDIA), yes_no(VFM_HAVE_MPI), yes_no(VFM_HAVE_CUDA),
                      yes_no(VFM_HAVE_OWN_LIBGOMP));
  text += fmt::format("compiler: {}\n", VFM_COMPILER);
  text += fmt::format(
      "libraries: fmt {}.{}.{}, CLI11 {}, nlohmann-json {}.{}.{}, xxHash {}.{}.{}\n",
      FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100, CLI11_VERSION,
      NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR, NLOHMANN_JSON_VERSION_PATCH,
      XXH_VERSION_MAJOR, XXH_VERSION_MINOR, XXH_VERSION_RELEASE);
  if (!details.empty()) text += details.back() == '\n' ? details : details + "\n";
  return text;
}

}  // namespace vfm::cli
