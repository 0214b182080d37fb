// Reads the value of --endpoint: a server's address, or a JSON file with the address and settings
// (vfm-endpoint(5)).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "columns/caption/endpoint.h"

namespace vfm::columns {

/// Throws Error{usage}, which lists all that is wrong with the file, without values that may be
/// secret.
EndpointOptions read_endpoint(const std::string& url_or_file);

}  // namespace vfm::columns
