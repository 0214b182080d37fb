// The common part of the tools that add a column to shards: manifest in, manifest out, one column
// tar for each shard, results in the order of the input, resume by content.
//
// Beside X.NAME.tar stands X.NAME.json: the options, the hashes of everything the column was made
// from, the errors on the way, the column's record. If all that still holds, the column is kept and
// its errors are reported again: a resumed run ends like an uninterrupted one. A column with
// samples that a server did not answer is made again: unanswered().
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/held_json.h"
#include "base/json_fwd.h"
#include "base/progress.h"
#include "io/error_log.h"
#include "io/manifest.h"
#include "shard/columns.h"
#include "shard/writer.h"
#include "share/slots.h"

namespace vfm::columns {

/// The output of `fill` beside the samples.
struct ColumnNotes {
  std::vector<io::Fault> errors;
  /// Files read other than the shard's tars: path -> XXH3-128, or null if absent.
  HeldJson inputs = HeldJson::object();
  /// Put into the shard's record, and kept with the column.
  HeldJson of_record = HeldJson::object();
};

struct ColumnJob {
  std::string tool;              ///< "vfm-caption"
  std::string column;            ///< "caption"
  std::string directory;         ///< where columns go; empty: beside their shards
  bool force = false;            ///< rewrite columns that are there already
  Progress* progress = nullptr;  ///< counts the samples of columns that are kept; may be null
  shard::ReadLimits limits;
  /// All else that decides the column's bytes, beside the shard and the files read: options,
  /// versions, the record fields used.
  std::function<Json(const io::Record&)> settings;
  /// Reads all samples and adds one for each. Throws Error if the shard gets no column. The
  /// reader's faults are noted after it.
  std::function<void(const io::Record&, shard::JoinedReader&, shard::Writer&, ColumnNotes&)> fill;
  /// The names that `of_record` may have; an earlier column's are removed from the record.
  std::vector<std::string> record_fields = {};
  /// Counts a column's samples by what they were made from, where it is a loss if this changes. The
  /// user is told if a column that is made again, unasked, has fewer of one kind. May be empty.
  std::function<std::map<std::string, std::int64_t>(const std::string& tar)> origins = {};
  /// Called for each shard that has its column now, in order, before its record is written. May be
  /// empty.
  std::function<void(const io::Record&)> done;
  /// Called when all shards are done, with why the input is incomplete; empty: it came whole. May
  /// be empty.
  std::function<void(const std::string&)> ended;
};

/// True if a server gave no answer about a sample. A column with such an error is made again by the
/// next run, which asks about these samples again.
bool unanswered(const io::Fault& fault);

/// Runs `job` over the shards of `inputs` (as shard/shard_input.h takes them); records of other
/// kinds pass unchanged. Records go to standard output in input order, errors to
/// COLUMN-errors.jsonl in the columns' directory. Returns the number of errors. Throws Error if the
/// input broke off, or there is no shard at all; Stopped.
long run_column_job(const ColumnJob& job, const std::vector<std::string>& inputs,
                    share::Slots& slots, io::ManifestWriter& manifest);

/// The tars of a record's columns other than `columns`; its own tar if there are none.
std::vector<std::string> tars_without(const io::Record& record,
                                      std::initializer_list<std::string_view> columns);

}  // namespace vfm::columns
