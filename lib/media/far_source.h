// Objects in buckets and at addresses (io/remote/address.h) as sources.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "io/remote/remote_file.h"

namespace vfm::media {

/// Opens an object. While a result for this address exists, later calls return the same object, and
/// all classes of media/ that open the address read it. So they read one version of the object, or
/// throw Error, and the server is asked once. Throws what RemoteFile::open() throws.
/// Thread-safety: any thread.
std::shared_ptr<io::RemoteFile> open_far_source(const std::string& address);

}  // namespace vfm::media
