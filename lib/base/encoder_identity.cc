// SPDX-License-Identifier: Apache-2.0
#include "base/encoder_identity.h"

#include "base/json.h"

namespace vfm {

Json encoder_identity(Json config) {
  if (config.is_object() && config.contains("hash")) config.erase("path");
  if (config.is_object()) config.erase("query_prompt");  // Only queries use it.
  return config;
}

}  // namespace vfm
