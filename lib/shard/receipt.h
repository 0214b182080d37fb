// The receipt of an output: a JSON file, written last. It shows that the output is complete, and
// from which input and with which settings it was made.
//
// When a tool resumes, it looks for a valid receipt. If there is none, the tool locks the receipt,
// so that other programs wait, and looks again. Then it makes the output and writes the receipt.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/held_json.h"
#include "base/json_fwd.h"
#include "io/atomic_file.h"
#include "io/error_log.h"
#include "shard/reader.h"
#include "shard/writer.h"

namespace vfm::shard {

/// Thread-safety: one thread at a time; receipts of different paths are independent.
class Receipt {
 public:
  /// A function that throws Error if the output does not match the receipt.
  using Check = std::function<void(const Json& receipt)>;

  /// Describes the receipt at `path`. In the receipt's JSON, the member named `member` has the
  /// inputs and settings of the output. The receipt is valid if this member equals `made_from`.
  Receipt(std::string path, std::string member, Json made_from);

  const std::string& path() const { return path_; }
  /// Returns the receipt if it is valid and passes `check`, otherwise null.
  Json find(const Check& check) const;
  /// If `redo` is false and find() returns a receipt, returns this receipt. Otherwise makes the
  /// output's folder, waits while another program has the lock, and locks the output until write()
  /// or the end of this object. If `redo` is false, then calls find() again. Returns null if the
  /// caller must make the output. Throws Error and Stopped.
  Json find_or_hold(const Check& check, bool redo);
  /// Locks the output like find_or_hold() with `redo`, and then calls find().
  Json hold_and_find(const Check& check);
  /// Writes the receipt durably, and unlocks the output, which must already be durable. Throws
  /// Error.
  void write(std::string_view json);

 private:
  std::string path_, member_;
  HeldJson made_from_;
  std::optional<io::AtomicFile> held_;
};

/// Returns "a/X.json" for "a/X.tar" and "a/X.tar.zst".
std::string receipt_path(const std::string& tar);

/// Returns all files of a shard with a receipt. The receipt comes first, so that it is removed
/// first.
std::vector<std::string> shard_files(const std::string& tar);

/// A Receipt::Check. Throws Error if the size of `tar` differs from its `record`, {"bytes":…,
/// "samples":…}, or if an index has the wrong length.
void check_written(const std::string& tar, const Json& record, const WriterOptions& indexes = {});

/// A Receipt::Check. The receipt's "max_member" is the limit under which samples were refused, or
/// null or absent if no sample was refused. Throws Error if this limit differs from `limits`.
void check_limit(const Json& receipt, const ReadLimits& limits);

/// Returns the value of "error_limits" for a receipt. If one of the errors may be temporary
/// (may_pass(), base/error.h), this value has the run's limits (base/input_limits.h). Otherwise it
/// is null.
Json limits_of_errors(const std::vector<io::Fault>& errors);
/// A Receipt::Check. Throws Error if the receipt's "error_limits" differ from this run's limits.
void check_error_limits(const Json& receipt);

}  // namespace vfm::shard
