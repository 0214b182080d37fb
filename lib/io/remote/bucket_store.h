// The store of io/store.h in a bucket.
//
// create() is a PUT with If-None-Match, replace() one with If-Match. 409 is tried again, 412 is
// lost. After 412 the object is asked for: it is ours if it has our name of this write (metadata
// vfm-writer), as the answer to an earlier try may have been lost. A version is the ETag, which two
// objects with equal bytes may share. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "io/store.h"

namespace vfm::io {

class BucketStore : public Store {
 public:
  /// `folder` is an address such as s3://bucket/prefix. Sends nothing.
  explicit BucketStore(const std::string& folder);
  ~BucketStore() override;

  /// Returns a message that names the store if it does not keep its promises, or "": a second
  /// create() of an object must lose, and a replace() of an older version too. Writes and removes
  /// one object ".vfm-probe-...". Asked once a process for each endpoint and bucket. Throws Error
  /// if the store cannot be asked, or allows no writes.
  std::string broken_condition();
  /// Throws Error{usage} with the message of broken_condition().
  void check_conditions() override;

  std::optional<Facts> facts(const std::string& name) const override;
  std::optional<Object> read(const std::string& name) const override;
  std::string read_range(const std::string& name, std::uint64_t offset,
                         std::size_t size) const override;
  std::vector<std::string> list(const std::string& folder) const override;
  void write(const std::string& name, std::string_view contents) override;
  bool create(const std::string& name, std::string_view contents) override;
  bool replace(const std::string& name, std::string_view contents,
               const std::string& version) override;
  bool remove(const std::string& name) override;
  /// Ends multipart uploads that killed programs left (end_left_uploads(), io/folder.h).
  void sweep(const std::string& folder) override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vfm::io
