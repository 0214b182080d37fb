// The receipt of an output: a JSON file, written last, which shows that the output is complete and
// made from this input with these settings.
//
// All tools that resume follow one protocol: look for a valid receipt; if there is none, lock the
// receipt, so that other programs wait; look again; make the output; write the receipt. Each tool
// adds its own fields.
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
  /// Throws Error if the output differs from its receipt.
  using Check = std::function<void(const Json& receipt)>;

  /// Describes the receipt at `path`. Its JSON member `member` names the inputs and settings of the
  /// output. The receipt is valid if this member equals `made_from`.
  Receipt(std::string path, std::string member, Json made_from);

  const std::string& path() const { return path_; }
  /// Returns the receipt if it is valid and passes `check`. Otherwise returns null, also for a
  /// damaged or foreign receipt.
  Json find(const Check& check) const;
  /// Calls find(). Without a valid receipt, or with `redo`, locks the output until write() or the
  /// end of this object. If another program makes the output, waits for it, and returns its
  /// receipt, unless `redo`. Makes the folder. Throws Error; Stopped.
  Json find_or_hold(const Check& check, bool redo);
  /// Does what find_or_hold() does with `redo`, but returns the receipt that exists after the wait.
  /// Another program may have written this receipt.
  Json hold_and_find(const Check& check);
  /// Writes the receipt, durably, and unlocks. The output must already be durable. Throws Error.
  void write(std::string_view json);

 private:
  std::string path_, member_;
  HeldJson made_from_;
  std::optional<io::AtomicFile> held_;
};

/// Returns "a/X.json" for "a/X.tar".
std::string receipt_path(const std::string& tar);

/// Returns all files of a shard that has a receipt. The receipt comes first, so that it is removed
/// first. Without a receipt the shard's files are regarded as unfinished.
std::vector<std::string> shard_files(const std::string& tar);

/// Throws Error, for Receipt::Check, unless `tar` has the size in its `record`, {"bytes":…,
/// "samples":…}, and indexes of the right length for its samples. It does not read the tar's
/// contents.
void check_written(const std::string& tar, const Json& record, const WriterOptions& indexes = {});

/// Throws Error, for Receipt::Check, if samples were refused under a limit other than `limits`. The
/// earlier limit is "max_member" of the receipt, null or absent if no sample was refused.
void check_limit(const Json& receipt, const ReadLimits& limits);

/// Returns a receipt's "error_limits": this run's limits (base/input_limits.h) if an error might
/// not occur in another run (may_pass(), base/error.h), otherwise null.
Json limits_of_errors(const std::vector<io::Fault>& errors);
/// Throws Error, for Receipt::Check, if "error_limits" differ from this run's limits.
void check_error_limits(const Json& receipt);

}  // namespace vfm::shard
