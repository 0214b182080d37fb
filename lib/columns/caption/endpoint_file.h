// What --endpoint names: the address of a server, or a JSON file with the address and how the
// server is asked (vfm-endpoint(5)).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "columns/caption/endpoint.h"

namespace vfm::columns {

/// Reads an address, or the file. Throws Error{usage} that tells all that is wrong with the file;
/// its message has no value that may be a secret.
EndpointOptions read_endpoint(const std::string& url_or_file);

}  // namespace vfm::columns
