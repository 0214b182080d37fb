// Answers of a server for a shard whose column is incomplete: X.caption.answers.jsonl beside the
// column. Each is written to disk at once, with its request's hash, so that a run that is killed
// and restarted does not pay for it twice.
// Empty answers are kept, too. An incomplete line, from a run killed while it wrote, is left out.
// Thread-safety: any thread; the column's receipt keeps other programs away.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "columns/caption/endpoint_answer.h"
#include "io/file.h"

namespace vfm::columns {

/// Hash of a request's body.
std::string request_hash(const std::string& request);

class PaidAnswers {
 public:
  /// Reads the existing answers. Throws Error.
  explicit PaidAnswers(std::string path);
  std::optional<EndpointAnswer> find(const std::string& hash) const;
  /// Written and synced when it returns. Throws Error.
  void add(const std::string& hash, const EndpointAnswer& answer);
  /// Removes the file, when the column is complete.
  static void remove(const std::string& path);

 private:
  std::string path_;
  mutable std::mutex mutex_;
  std::unordered_map<std::string, EndpointAnswer> answers_;
  io::File file_;  // opened at the first add
};

}  // namespace vfm::columns
