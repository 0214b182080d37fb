// Reads and writes manifests, the JSON Lines that tools pass to each other (vfm-manifest(5)).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/held_json.h"
#include "base/json_fwd.h"
#include "io/error_log.h"
#include "io/input_lines.h"

namespace vfm::io {

/// One line of a manifest. A bare path or URL becomes {"kind": K, "path": P}. K is "shard" for a
/// tar (.tar, or compressed such as .tar.gz) and for a .files (vfm-clip --into files). Otherwise K
/// is "video".
struct Record {
  std::string kind;   ///< Kind such as "video", "shard", "checkpoint", "clip".
  HeldJson json;      ///< The whole object, with unknown keys, in the order of the line.
  std::string where;  ///< Origin for messages, such as "line 3 of standard input".

  std::string path() const { return need_string(json, "path", where); }
};

/// Returns the tars of a shard's columns, each once, in the order of the "columns" map. Without
/// "columns", returns the shard's own path.
std::vector<std::string> column_tars(const Record& shard);

/// Returns whether this is the name of a manifest: ".jsonl" or ".ndjson", or either with ".zst".
bool is_manifest_name(std::string_view path);

/// Parses one line, which is a JSON object or a bare path. Throws Error for other JSON, a missing
/// "kind", wrong types, and a path with control characters or invalid UTF-8. A line that begins
/// with a brace and a quote is never a path, but "[x].mp4" and "{x}.mp4" are paths. Pure; fuzzed.
Record parse_record(std::string_view line, std::string_view where);

/// Reads records from command line arguments (io/input_lines.h). An argument is a path or URL of a
/// video or shard, a manifest file (is_manifest_name()), "-" for lines on standard input, or
/// kNames. Calls `on_bad` for an invalid line, a line over 16 MiB, or a name that is not UTF-8
/// (base/utf8.h), and continues. If the tool that wrote a record was started in another folder, the
/// record's names are relative to that folder (io/streams.h). The reader then makes "path",
/// "columns", "source" and "sources" absolute. Thread-safety: one thread at a time.
class ManifestReader {
 public:
  ManifestReader(std::vector<std::string> arguments, OnFault on_bad);
  /// Returns the next record, or nullopt at the end. Throws Error if standard input cannot be read.
  /// Throws Stopped after a signal.
  std::optional<Record> next();
  const InputStreams& streams() const { return lines_.streams(); }

 private:
  void name_from_here(Record& record) const;

  InputLines lines_;
  OnFault on_bad_;
};

/// Writes each record to a descriptor as one line, without delay. Characters that control a
/// terminal become \uXXXX. Call write() for a file only after the file is durable. cli::run calls
/// begin() and end(). io/held_begin.h delays the begin record. Thread-safety: any thread; lines are
/// never mixed.
class ManifestWriter {
 public:
  /// Writes to `fd`, by default standard output. Does not own the descriptor.
  explicit ManifestWriter(int fd = 1) : fd_(fd) {}
  /// write(), begin(), tell() and end() throw Error if the line cannot be written (closed pipe,
  /// full disk).
  void write(const Json& record);
  void begin(std::string_view tool, const std::string& id);
  /// Adds a number or an object to the end record.
  void tell(const char* name, Json fact);
  /// Writes the end record. `status` is the tool's exit status, 0 or 1.
  void end(int status);

 private:
  void write_line(const Json& record);

  int fd_;
  std::mutex mutex_;
  std::string id_;
  std::uint64_t records_ = 0;
  HeldJson told_ = HeldJson::object();
};

}  // namespace vfm::io
