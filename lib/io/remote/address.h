// The addresses of objects: s3://BUCKET/KEY, http://HOST/PATH, https://HOST/PATH,
// msc://PROFILE/PATH.
//
// An address is a path wherever a path is read or written: File, MappedFile, AtomicFile (io/file.h,
// io/atomic_file.h) and the functions of io/folder.h take both. Only s3:// and msc:// can be
// written and listed. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace vfm::io {

struct ObjectAddress {
  enum class Kind { s3, http };

  Kind kind = Kind::s3;
  std::string text;     ///< The address as the user wrote it, for messages.
  std::string profile;  ///< MSC profile, or empty.
  std::string bucket;   ///< Empty for http.
  std::string key;  ///< Key in the bucket, without a slash at the front. For http the whole URL.
};

/// Returns whether `path` is an address that this build reads: s3://, http://, https:// or msc://.
bool is_remote(std::string_view path);
/// Returns whether objects can be written and listed below `path`: s3:// or msc://.
bool is_bucket(std::string_view path);
/// Returns the parts of an address. Throws Error{usage} that says what is wrong: no bucket, a user
/// or a query in the address, another scheme, an unknown profile of MSC or one that is not S3.
ObjectAddress address_of(const std::string& path);

}  // namespace vfm::io
