// What killed programs left in a bucket: multipart uploads that were not completed, and objects
// with which a store's conditions were tried. The next program that begins to write there removes
// them.
//
// A multipart upload does not tell who began it. So whoever begins one first writes an object
// FOLDER/.vfm-upload-WRITER, with the key, the host and the process, and removes it after the
// upload. Each `beat` the object is written again. FOLDER is where the program said that it writes
// (end_left_writes()), or the folder of the key. An upload is ended if the process of such an
// object of its key is gone, and no living process has another one. A process is gone if this
// machine says so, or if its object did not change for `patience`, by the store's clock alone.
// Uploads without such an object, of other programs, are ended after a day. Thread-safety: any
// thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "io/remote/s3_client.h"

namespace vfm::io {

/// Seconds between two beats, and those after which a process without a beat counts as gone. To the
/// latter, net_seconds() is added, as a request may take so long. Only tests change them.
struct ClaimTimes {
  std::atomic<double> beat{20}, patience{60};
};
extern ClaimTimes g_claim_times;

/// Tells others that this process uploads an object, until the end of this.
class UploadClaim {
 public:
  /// Writes the claim. Throws Error. Begin the upload after that.
  UploadClaim(S3Client& client, const std::string& key);
  /// Removes the claim. Complete or end the upload before that.
  ~UploadClaim();
  UploadClaim(const UploadClaim&) = delete;
  UploadClaim& operator=(const UploadClaim&) = delete;

  /// The id of the upload. The next beat writes it.
  void set_id(const std::string& id);
  /// Ends the upload. If that fails, the claim stays where it is, for the next program.
  void end_upload();

  struct Held;

 private:
  std::shared_ptr<Held> held_;
};

/// Returns the contents of an object by which others can tell whether this process is alive.
/// `number` makes two of them differ.
std::string sign_of_life(int number);

/// Ends the uploads below `prefix` that killed programs left, and removes their other objects right
/// in it. `prefix` is empty or ends in a slash. This process writes there from now on. Where a
/// process may live or not, a thread looks `again` later, once. Returns the number of uploads that
/// were ended now. Throws Error.
int end_left_writes(S3Client& client, const std::string& prefix, bool again = true);
/// Removes the objects right in `prefix` with which killed programs tried the store. Logs an Error,
/// as a user may have no right to list objects.
void remove_left_probes(S3Client& client, const std::string& prefix);

}  // namespace vfm::io
