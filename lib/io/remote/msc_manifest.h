// The objects that a manifest of MSC lists, which spares the listing of a bucket.
//
// A manifest is <base>/.msc_manifests/<time>/msc_manifest_index.json with parts in JSON Lines. The
// newest is read, once in a process. Its rows are held, about 100 bytes and the key for each.
// Source: multistorageclient/providers/manifest_metadata.py, commit 712d11f.
// Thread-safety: any thread for const functions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "io/remote/s3_client.h"

namespace vfm::io {

class MscManifest {
 public:
  /// How the manifest is found and read, by keys of the bucket.
  struct Reader {
    /// The names of the folders right below a prefix, each with a slash.
    std::function<std::vector<std::string>(const std::string& prefix)> folders;
    std::function<bool(const std::string& key)> exists;
    std::function<std::string(const std::string& key)> read;
    std::function<void(const std::string& key,
                       const std::function<void(const std::string& line)>& each)>
        read_lines;
  };

  /// `base` is the prefix of the profile's keys, empty or with a slash at its end. `path` is that
  /// of the manifest below it. Throws Error if there is none.
  MscManifest(const Reader& reader, const std::string& base, const std::string& path);

  /// As S3Client::list().
  void list(const std::string& prefix, bool all,
            const std::function<void(const ListedObject&)>& each) const;
  /// Returns the key of the object that the manifest names `key`, or nullopt if it names none.
  std::optional<std::string> physical(const std::string& key) const;

 private:
  struct Row {
    std::string key;
    std::uint64_t bytes = 0;
    std::string physical;  ///< Empty if it is the key.
  };
  std::vector<Row> rows_;  // in order of their keys
};

}  // namespace vfm::io
