// The configuration of MSC (multi-storage-client), for addresses msc://PROFILE/PATH.
//
// The file is $MSC_CONFIG, or the first that exists of MSC's search path: $XDG_CONFIG_HOME/msc/
// config.{yaml,json}, ~/.msc_config.{yaml,json}, ~/.config/msc/config.{yaml,json}, the same below
// $XDG_CONFIG_DIRS (/etc/xdg), /etc/msc_config.{yaml,json}. Of the providers of storage, s3, s8k
// and gcs_s3 are known. Variables in texts ($NAME, ${NAME}) are replaced.
// Source: multistorageclient/config.py and providers/s3.py, commit 712d11f.
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/remote/credentials.h"

namespace vfm::io {

struct MscProfile {
  std::string base_path;  ///< "bucket/prefix", "bucket" or empty.
  S3Place place;
  std::string manifest;  ///< The path of its manifests below base_path, or empty: it lists.
  bool has_manifest = false;
};

/// Returns the profile of this name. Throws Error{usage} that names the file and the setting.
MscProfile msc_profile(const std::string& name);
/// As msc_profile(), of a configuration's text. For tests.
MscProfile msc_profile_of(std::string_view text, const std::string& file, const std::string& name);

/// One line of a part of a manifest.
struct MscRow {
  std::string key;       ///< Below base_path.
  std::string physical;  ///< Where the object is, below base_path.
  std::uint64_t bytes = 0;
};
/// Returns the paths of a manifest's parts, from the text of msc_manifest_index.json. Throws Error.
std::vector<std::string> msc_manifest_parts(std::string_view text, const std::string& what);
/// Returns a row of a part (JSON Lines). Throws Error.
MscRow msc_manifest_row(std::string_view line, const std::string& what);

}  // namespace vfm::io
