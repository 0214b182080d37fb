// The list.json of a folder of clips, as vfm-clip list writes it (parts/clip_list.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/json.h"

namespace vfm {

/// Returns the contents of parts/list.json for this number of parts. The other members are made up.
inline std::string list_of_parts(int parts) {
  return dump_json({{"version", 1},
                    {"parts", parts},
                    {"shard_bytes", 1},
                    {"buckets", 1},
                    {"digits", 2},
                    {"videos", 9},
                    {"bytes", 9},
                    {"appended", Json::array()}});
}

}  // namespace vfm
