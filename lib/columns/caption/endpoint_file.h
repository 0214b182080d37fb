// Reads the value of --endpoint, a server's address or a JSON file (vfm-endpoint(5)).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "columns/caption/endpoint.h"

namespace vfm::columns {

/// Throws Error{usage}, which lists all faults of the file. The error shows no value that may be
/// secret.
EndpointOptions read_endpoint(const std::string& url_or_file);

}  // namespace vfm::columns
