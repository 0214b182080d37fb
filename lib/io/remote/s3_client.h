// Requests to an object store that speaks S3 over HTTP: signed (SigV4), tried again, counted.
//
// This is below RemoteFile, ObjectUpload, BucketStore and io/folder.h, which others use. One client
// for each endpoint, bucket and profile lives as long as the process, with its connections.
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/remote/address.h"

namespace vfm::io {

struct ObjectFacts {
  std::uint64_t bytes = 0;
  std::string version;  ///< ETag without quotes.
  std::string hash;     ///< Metadata vfm-xxh3, or empty.
};

/// What one call of list() returns.
struct ListedObject {
  std::string name;  ///< Below the prefix. A folder ends in a slash.
  std::uint64_t bytes = 0;
  std::string version;
};

class S3Client {
 public:
  static std::shared_ptr<S3Client> of(const ObjectAddress& address);
  virtual ~S3Client() = default;

  virtual std::optional<ObjectFacts> head(const std::string& key) = 0;
  /// Objects and folders right below `prefix`, which is empty or ends in a slash. In order of
  /// bytes. With `all`, the objects of all depths and no folders. Calls `each` page by page.
  virtual void list(const std::string& prefix, bool all,
                    const std::function<void(const ListedObject&)>& each) = 0;
  /// Removes an object. No error if there is none.
  virtual void remove(const std::string& key) = 0;
  /// Copies an object within the bucket, on the server.
  virtual void copy(const std::string& from, const std::string& to) = 0;
};

}  // namespace vfm::io
