// Stores a server's answers, which may cost money, until a shard's column is complete:
// X.caption.answers.jsonl beside the column. Each answer, even an empty one, is on disk at once
// with its request's hash, so a restarted run does not pay twice. An incomplete line of a killed
// run is ignored.
// Thread-safety: any thread; the column's receipt locks out other programs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "columns/caption/endpoint_answer.h"
#include "io/file.h"

namespace vfm::columns {

/// Returns the hash of a request's body.
std::string request_hash(const std::string& request);

class PaidAnswers {
 public:
  /// Reads the existing answers. Throws Error.
  explicit PaidAnswers(std::string path);
  std::optional<EndpointAnswer> find(const std::string& hash) const;
  /// Returns when the answer is on disk (synced). Throws Error.
  void add(const std::string& hash, const EndpointAnswer& answer);
  /// Removes the file of a complete column.
  static void remove(const std::string& path);

 private:
  std::string path_;
  mutable std::mutex mutex_;
  std::unordered_map<std::string, EndpointAnswer> answers_;
  io::File file_;  // opened at the first add
};

}  // namespace vfm::columns
