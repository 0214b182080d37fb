// Runs a tool that adds a column to shards. The job makes a column tar for each shard of the input.
//
// X.NAME.json beside the column X.NAME.tar has the options, the hashes of all inputs, the errors
// and the shard's record. If options, inputs and column are unchanged, the column is kept, and its
// errors are reported again. But if a server gave no answer for a sample of the column
// (unanswered()), the column is made again.
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
#include "shard/part_output.h"
#include "shard/writer.h"
#include "share/slots.h"

namespace vfm::columns {

/// The results of ColumnJob::fill besides the samples.
struct ColumnNotes {
  std::vector<io::Fault> errors;
  /// An object with the XXH3-128 of each file that was read, by the file's path. The value of a
  /// missing file is null. The shard's tars are left out.
  HeldJson inputs = HeldJson::object();
  /// Fields to add to the shard's record and to X.NAME.json.
  HeldJson of_record = HeldJson::object();
};

struct ColumnJob {
  std::string tool;       ///< Name of the tool, such as "vfm-caption".
  std::string column;     ///< Name of the column, such as "caption".
  std::string directory;  ///< Folder of the columns, or empty for the folder of each shard.
  bool force = false;
  Progress* progress = nullptr;  ///< Counter of samples in kept columns; may be null.
  /// Columns whose tars the job does not read. If one of these columns is added after a run, the
  /// next run does not make the job's column again.
  std::vector<std::string> unread = {};
  /// Columns of other programs that the job reads, such as "caption". If such a program has parts
  /// in a folder of the input, they come first.
  std::vector<std::string> reads = {};
  /// If true, and job.parts follows the parts of other programs, waits for parts of `reads` also if
  /// there are none yet.
  bool awaits = false;
  shard::ReadLimits limits;
  /// Returns all that affects the bytes of the column: options, versions, and fields of the record.
  std::function<Json(const io::Record&)> settings;
  /// What of `settings` does not depend on the record. Processes with other such settings cannot
  /// do parts of one work.
  HeldJson common = {};
  /// The option that sets a member of `common`, for messages.
  std::map<std::string, std::string> options = {};
  /// Reads all samples of a shard, and adds a sample to the column for each of them. After the
  /// call, the job adds the reader's faults to ColumnNotes::errors. Throws Error if the shard gets
  /// no column.
  std::function<void(const io::Record&, shard::JoinedReader&, shard::Writer&, ColumnNotes&)> fill;
  /// Names of all fields that ColumnNotes::of_record may have. Before `of_record` is added to the
  /// record, the record's fields with these names are removed.
  std::vector<std::string> record_fields = {};
  /// Returns the number of a column's samples by origin, such as the source of a caption. If a new
  /// column has fewer samples of an origin than the old column, the user is warned, unless `force`
  /// is set. May be empty.
  std::function<std::map<std::string, std::int64_t>(const std::string& tar)> origins = {};
  /// Called for each shard in order, after the column is made and before the record is written. May
  /// be empty.
  std::function<void(const io::Record&)> done;
  /// The parts of the work, or null for the whole work.
  const shard::PartTask* parts = nullptr;
  /// Called after the last shard, with the reason why the input is incomplete, or with "" if it is
  /// complete. May be empty.
  std::function<void(const std::string&)> ended;
};

/// Returns whether the fault says that a server did not answer.
bool unanswered(const io::Fault& fault);

/// Runs `job` over the shards of `inputs`, which have the forms of shard/shard_input.h. Writes
/// records to standard output in the order of the input, and errors to COLUMN-errors.jsonl in the
/// folder of the columns. Records of kinds other than "shard" are written unchanged. Shards of a
/// folder of clips that do not count (shard/listed_clips.h) get a column, and their records are not
/// written. Returns the number of errors. Throws Stopped. If the input is incomplete or has no
/// shard, throws Error.
///
/// With job.parts, writes the files of shard/part_output.h instead of the errors, drops records of
/// other kinds, and returns the number of errors that may pass.
long run_column_job(const ColumnJob& job, const std::vector<std::string>& inputs,
                    share::Slots& slots, io::ManifestWriter& manifest);

/// Returns the tars of the record's columns, without the columns named in `columns`. If no column
/// remains, returns the record's own tar.
std::vector<std::string> tars_without(const io::Record& record,
                                      const std::vector<std::string>& columns);

}  // namespace vfm::columns
