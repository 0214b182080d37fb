// Stores a server's answers in X.caption.answers.jsonl beside a column until the column is
// complete. Each answer has the hash of its request, so a restarted run does not send the request
// again. The file of a column in a bucket is local (io/growing_file.h), and written to the bucket
// after the first answer, once a minute, and when this object ends.
// Thread-safety: any thread. A lock on the column's receipt (shard/receipt.h) keeps out other
// programs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/stopwatch.h"
#include "columns/caption/endpoint_answer.h"
#include "io/file.h"
#include "io/growing_file.h"

namespace vfm::columns {

std::string request_hash(const std::string& request);

class PaidAnswers {
 public:
  /// Reads the file. Throws Error.
  explicit PaidAnswers(std::string path);
  ~PaidAnswers();
  PaidAnswers(const PaidAnswers&) = delete;
  PaidAnswers& operator=(const PaidAnswers&) = delete;
  std::optional<EndpointAnswer> find(const std::string& hash) const;
  /// Stores an answer, and returns after the answer is synced to disk. Throws Error.
  void add(const std::string& hash, const EndpointAnswer& answer);
  /// Removes the file. Call it when the column is complete.
  static void remove(const std::string& path);

 private:
  void put() noexcept;

  io::GrowingFile kept_;
  std::string path_;
  Stopwatch since_put_;
  bool put_ = false;
  mutable std::mutex mutex_;
  std::unordered_map<std::string, EndpointAnswer> answers_;
  io::File file_;  // opened by the first add()
};

}  // namespace vfm::columns
