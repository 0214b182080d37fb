// Requests to an object store that speaks S3 over HTTP: signed (SigV4), tried again, counted.
//
// This is below RemoteFile, ObjectUpload, BucketStore and io/folder.h, which others use. One client
// for each endpoint, bucket and profile lives as long as the process, with its connections.
// Every function throws Error, which names the address, and Stopped. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/remote/address.h"
#include "io/remote/requests.h"

namespace vfm::io {

struct ObjectFacts {
  std::uint64_t bytes = 0;
  std::string version;  ///< ETag without quotes.
  std::string hash;     ///< Metadata vfm-xxh3, or empty.
  std::string writer;   ///< Metadata vfm-writer, or empty.
};

/// What one call of list() returns.
struct ListedObject {
  std::string name;  ///< Below the prefix. A folder ends in a slash.
  std::uint64_t bytes = 0;
  std::string version;
  double modified = 0;  ///< Seconds since 1970 by the store's clock, or 0.
};

/// A multipart upload that was not completed.
struct OpenUpload {
  std::string key, id;
  double age = 0;  ///< Seconds by the store's clock, or 0.
};

/// What must hold for an object to be written.
struct WriteCondition {
  bool absent = false;  ///< There is no object of this key.
  std::string version;  ///< The object has this version, unless empty.
  /// If not null, gets the server's words if it refuses the write itself. It does not hold then.
  std::string* refusal = nullptr;
};

/// One part of a multipart upload that the server has.
struct UploadedPart {
  std::string version;
  std::string crc;  ///< CRC32C in base64, or empty.
};

class S3Client {
 public:
  static std::shared_ptr<S3Client> of(const ObjectAddress& address);
  ~S3Client();

  std::optional<ObjectFacts> head(const std::string& key);
  /// Objects and folders right below `prefix`, which is empty or ends in a slash. In order of
  /// bytes. With `all`, the objects of all depths and no folders. Calls `each` page by page.
  void list(const std::string& prefix, bool all,
            const std::function<void(const ListedObject&)>& each);
  /// Calls `each` for the objects whose keys begin with `begin` and have no slash after that. Their
  /// names are what follows. Manifests are not asked. Returns the store's time in seconds since
  /// 1970, or 0.
  double list_beginning(const std::string& begin,
                        const std::function<void(const ListedObject&)>& each);
  /// Removes an object. No error if there is none.
  void remove(const std::string& key);
  /// The same. After a stop, the request is sent once, for at most five seconds.
  void remove_at_end(const std::string& key);
  /// Copies an object within the bucket, on the server.
  void copy(const std::string& from, const std::string& to);

  /// Returns the key of the object that `key` stands for in a manifest of MSC, or `key`.
  std::string physical(const std::string& key) const;
  /// Returns the address of a key as the user writes it, for messages.
  std::string address(const std::string& key) const;
  /// The server and the bucket, for what is asked once for each.
  std::string name() const;
  std::shared_ptr<Requester> requester() const;

  /// Returns an object, or nullopt if there is none. Throws Error{limit} if it has more than `most`
  /// bytes.
  std::optional<WholeObject> read(const std::string& key, std::uint64_t most);
  /// Returns `size` bytes at `offset`, or fewer at the end of the object.
  std::string read_range(const std::string& key, std::uint64_t offset, std::size_t size);

  /// Writes an object by one request, with its hash as metadata. Returns its version, or nullopt if
  /// the condition does not hold.
  std::optional<std::string> write(const std::string& key, std::string_view contents,
                                   const WriteCondition& condition = {});
  /// Begins a multipart upload of `writer`, a name that writer_name() made. Returns its id.
  std::string begin_upload(const std::string& key, const std::string& writer);
  UploadedPart write_part(const std::string& key, const std::string& id, int number,
                          std::string_view bytes, const std::atomic<bool>* cancelled);
  /// Completes an upload. Returns the object's version, or nullopt if the condition does not hold.
  std::optional<std::string> complete_upload(const std::string& key, const std::string& id,
                                             const std::string& writer,
                                             const std::vector<UploadedPart>& parts,
                                             const WriteCondition& condition);
  /// Removes the parts of an upload. No error if there is none.
  void end_upload(const std::string& key, const std::string& id);
  /// Returns the uploads of keys that begin with `prefix`.
  std::vector<OpenUpload> uploads(const std::string& prefix);
  /// Returns a new name of a write by this process, by which its object can be known.
  static std::string writer_name();

 private:
  struct State;
  explicit S3Client(std::unique_ptr<State> state);
  void copy_in_parts(ObjectRequest request, const ObjectFacts& from, const std::string& to);
  std::unique_ptr<State> state_;
};

}  // namespace vfm::io
