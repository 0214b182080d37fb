// Runs a tool that adds a column to shards: reads a manifest, makes one column tar for each shard,
// and writes the manifest in the order of the input. A run resumes by content.
//
// X.NAME.json beside X.NAME.tar has the options, the hashes of all inputs of the column, its errors
// and its record. If options, inputs and column are unchanged, the column is kept and its errors
// are reported again. A column with samples that a server did not answer is made again
// (unanswered()).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>
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

/// The results of `fill` besides the samples.
struct ColumnNotes {
  std::vector<io::Fault> errors;
  /// Maps the path of each file read, except the shard's tars, to its XXH3-128, or to null if the
  /// file does not exist.
  HeldJson inputs = HeldJson::object();
  /// Fields to add to the shard's record. X.NAME.json keeps them.
  HeldJson of_record = HeldJson::object();
};

struct ColumnJob {
  std::string tool;              ///< "vfm-caption"
  std::string column;            ///< "caption"
  std::string directory;         ///< the columns' folder; empty: each shard's folder
  bool force = false;            ///< rewrite existing columns
  Progress* progress = nullptr;  ///< counts samples of kept columns; may be null
  /// Columns from which this column is not made. Their tars are not read, so this column is not
  /// made again when they appear.
  std::vector<std::string> unread = {};
  shard::ReadLimits limits;
  /// Returns all that decides the column's bytes, apart from the shard and the files read: options,
  /// versions, and the used fields of the record.
  std::function<Json(const io::Record&)> settings;
  /// Reads all samples and adds one for each. Faults of the reader are noted after its return.
  /// Throws Error if the shard gets no column.
  std::function<void(const io::Record&, shard::JoinedReader&, shard::Writer&, ColumnNotes&)> fill;
  /// All names that `of_record` may have. Fields with these names from an earlier column are
  /// removed.
  std::vector<std::string> record_fields = {};
  /// Counts a column's samples by origin. Leaves out origins whose loss does not matter. The user
  /// is warned if a column made again without `force` has fewer samples of an origin. May be empty.
  std::function<std::map<std::string, std::int64_t>(const std::string& tar)> origins = {};
  /// Called for each shard with its column, in order, before its record is written. May be empty.
  std::function<void(const io::Record&)> done;
  /// Called when all shards are done, with the reason why the input is incomplete, or "" if the
  /// input is complete. May be empty.
  std::function<void(const std::string&)> ended;
};

/// Returns true if a server gave no answer about a sample.
bool unanswered(const io::Fault& fault);

/// Runs `job` over the shards of `inputs` (forms: shard/shard_input.h). Records of other kinds pass
/// unchanged. Records go to standard output in input order, errors to COLUMN-errors.jsonl in the
/// columns' directory. Returns the number of errors. Throws Error if the input is incomplete or has
/// no shard, and Stopped.
long run_column_job(const ColumnJob& job, const std::vector<std::string>& inputs,
                    share::Slots& slots, io::ManifestWriter& manifest);

/// Returns the tars of a record's columns except `columns`. If no column is left, returns the
/// record's own tar.
std::vector<std::string> tars_without(const io::Record& record,
                                      const std::vector<std::string>& columns);

}  // namespace vfm::columns
