// A store of small named objects, such as the markers and leases of parts (parts/). Any number of
// hosts may use one store. FileStore keeps the objects as files of a folder, BucketStore
// (io/remote/bucket_store.h) in a bucket.
//
// Names are paths relative to the store, such as "clip/00003/done.json", without "." and "..".
// Nothing rests on locks of files (flock), which network file systems may not pass to other hosts.
// Every function throws Error, which names the object, if the store cannot be read or written. A
// full disk ends the run (base/full_disk.h). Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vfm::io {

class Store {
 public:
  /// Facts of an object. `version` differs between two objects that had the same name one after
  /// the other, as an ETag does. The text has no other meaning.
  struct Facts {
    std::uint64_t bytes = 0;
    std::string version;
  };
  struct Object {
    std::string contents, version;
  };

  virtual ~Store() = default;

  /// Throws Error if the store does not keep the promises of create() and replace(). Call it before
  /// leases rest on them.
  virtual void check_conditions() {}

  /// Return nullopt if there is no such object.
  virtual std::optional<Facts> facts(const std::string& name) const = 0;
  virtual std::optional<Object> read(const std::string& name) const = 0;
  /// Returns `size` bytes at `offset`, or fewer at the end of the object. Throws Error if there is
  /// no such object.
  virtual std::string read_range(const std::string& name, std::uint64_t offset,
                                 std::size_t size) const = 0;
  /// Returns the names below `folder`, without the folder, in order of bytes: objects, and folders
  /// with a slash at the end. Returns an empty list if there is no such folder. An object that
  /// appears or disappears during the call may be missing. Names that begin with a dot are left
  /// out, since temporary objects have such names.
  virtual std::vector<std::string> list(const std::string& folder) const = 0;

  /// Writes a whole object. A reader sees the older object or the new one.
  virtual void write(const std::string& name, std::string_view contents) = 0;
  /// Writes the object if there is none of this name. Of several callers, one gets true.
  virtual bool create(const std::string& name, std::string_view contents) = 0;
  /// Replaces the object if it still has `version`. Of several callers, one gets true.
  virtual bool replace(const std::string& name, std::string_view contents,
                       const std::string& version) = 0;
  /// Removes the object. Returns false if there was none.
  virtual bool remove(const std::string& name) = 0;
  /// Removes temporary objects of `folder` that killed processes left. Those of living processes
  /// may be removed too, and are then written again. Nobody may replace() an object of the folder
  /// meanwhile.
  virtual void sweep(const std::string& folder) = 0;
};

/// The store in a folder. An object is written as a temporary file, synced, and then renamed or
/// linked to its name. The temporary name has the host and the process. Needs a file system with
/// hard links, such as NFS, Lustre, and the file systems of local disks.
class FileStore : public Store {
 public:
  /// `folder` need not exist. Folders are made when objects are written.
  explicit FileStore(std::string folder) : folder_(std::move(folder)) {}

  const std::string& folder() const { return folder_; }
  std::string path(const std::string& name) const;

  std::optional<Facts> facts(const std::string& name) const override;
  std::optional<Object> read(const std::string& name) const override;
  std::string read_range(const std::string& name, std::uint64_t offset,
                         std::size_t size) const override;
  std::vector<std::string> list(const std::string& folder) const override;
  void write(const std::string& name, std::string_view contents) override;
  bool create(const std::string& name, std::string_view contents) override;
  /// Creates ".NAME.next", compares the version, and renames the file to NAME. A ".NAME.next" of a
  /// killed process is removed when it did not change for ten seconds.
  bool replace(const std::string& name, std::string_view contents,
               const std::string& version) override;
  bool remove(const std::string& name) override;
  void sweep(const std::string& folder) override;

 private:
  std::string folder_;
};

/// Returns the store in a folder, which is a path or an address of a bucket.
std::unique_ptr<Store> open_store(const std::string& folder);

}  // namespace vfm::io
