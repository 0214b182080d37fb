// What proves that an output made earlier is complete, and was made from this input with these
// settings: a JSON file that is written when all else stands.
//
// One protocol for all tools that resume: look for the receipt; if there is none that holds, hold
// it, so that other programs wait; look once more; make the output; write the receipt. What else it
// contains is each tool's own.
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
  /// Throws Error if the output is not as its receipt says.
  using Check = std::function<void(const Json& receipt)>;

  /// At `path`. Its `member` says from what, and with which settings, the output was made; it holds
  /// if that is `made_from`.
  Receipt(std::string path, std::string member, Json made_from);

  const std::string& path() const { return path_; }
  /// The receipt, if `made_from` and `check` say that it holds; else null, also for one that is
  /// damaged or not ours.
  Json find(const Check& check) const;
  /// find(); where there is nothing, or with `redo`, keeps other programs from the output until
  /// write() or the end of this object. Waits for one that is making it, and takes what that one
  /// made, unless `redo`. Makes the folder. Throws Error; Stopped.
  Json find_or_hold(const Check& check, bool redo);
  /// As find_or_hold() with `redo`, and gives the receipt that is there then: another program may
  /// have written it since this one looked.
  Json hold_and_find(const Check& check);
  /// Writes the receipt, durably, and lets others go on. The output must be durable. Throws Error.
  void write(std::string_view json);

 private:
  std::string path_, member_;
  HeldJson made_from_;
  std::optional<io::AtomicFile> held_;
};

/// "a/X.tar" -> "a/X.json".
std::string receipt_path(const std::string& tar);

/// All files of a shard that has a receipt. The receipt is the first: without it the others count
/// as unfinished, so it is to be removed first.
std::vector<std::string> shard_files(const std::string& tar);

/// For Receipt::Check: throws Error unless `tar` has the size that its `record`, {"bytes":…,
/// "samples":…}, says, and stands there with the indexes that it was written with, which are as
/// long as those of so many samples. No contents are read.
void check_written(const std::string& tar, const Json& record, const WriterOptions& indexes = {});

/// For Receipt::Check: throws Error if samples were refused under another limit: "max_member" of
/// the receipt, null or absent where none was.
void check_limit(const Json& receipt, const ReadLimits& limits);

/// What a receipt says as "error_limits": where some errors may pass (base/error.h), the options of
/// base/input_limits.h under which they came. Null: there is no such error.
Json limits_of_errors(const std::vector<io::Fault>& errors);
/// For Receipt::Check: throws Error if errors came under other limits than those of this run.
void check_error_limits(const Json& receipt);

}  // namespace vfm::shard
