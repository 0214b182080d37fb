// The manifest: JSON Lines between the tools (vfm-manifest(5)).
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

/// One line of a manifest. A bare path or URL becomes {"kind": K, "path": P}, K by its extension:
/// "shard" for .tar, .tar.gz and the like and .files (vfm-clip --into files), else "video".
struct Record {
  std::string kind;   ///< "video", "shard", "checkpoint", "clip", ...
  HeldJson json;      ///< the whole object, unknown keys included, in their order
  std::string where;  ///< for messages: "line 3 of standard input", "argument 'a.mp4'"

  std::string path() const { return need_string(json, "path", where); }
};

/// The tars that hold a shard's columns, in the order of its "columns" map, each path once; a shard
/// without "columns" is its own path.
std::vector<std::string> column_tars(const Record& shard);

/// Parses one line: JSON object, or bare path. Throws Error on anything else: other JSON, no
/// "kind", wrong types, a path with control characters or invalid UTF-8. A line that begins like an
/// object (a brace, a quote) is one, or damaged; "[x].mp4" and "{x}.mp4" are paths. Pure; the fuzz
/// target calls it.
Record parse_record(std::string_view line, std::string_view where);

/// Reads records from command line arguments (io/input_lines.h): each is a video or shard path or
/// URL, or a manifest file (".jsonl", ".ndjson"), or "-" for lines on standard input, or kNames. A
/// bad line, one over 16 MiB, or a name that is not UTF-8 (base/utf8.h) is not fatal: `on_bad` is
/// called, and reading goes on. Thread-safety: one thread at a time.
/// Records of a tool that was started in another folder (io/streams.h) name files from there: their
/// "path", "columns", "source" and "sources" are made absolute.
class ManifestReader {
 public:
  ManifestReader(std::vector<std::string> arguments, OnFault on_bad);
  /// The next record, or nothing at the end. Throws Error when standard input cannot be read,
  /// Stopped after a signal.
  std::optional<Record> next();
  const InputStreams& streams() const { return lines_.streams(); }

 private:
  void name_from_here(Record& record) const;

  InputLines lines_;
  OnFault on_bad_;
};

/// Writes records to a descriptor, one line each, at once (a record promises that its file is
/// durable), with terminal control characters as \uXXXX. cli::run calls begin() and end() around a
/// tool's records: without an end, readers know that it was killed or failed. The begin is held
/// back until input (io/held_begin.h). Thread-safety: any thread, line by line.
class ManifestWriter {
 public:
  /// Standard output by default. Does not own the descriptor.
  explicit ManifestWriter(int fd = 1) : fd_(fd) {}
  /// Throws Error, as the others, when the line cannot be written (closed pipe, full disk).
  void write(const Json& record);
  void begin(std::string_view tool, const std::string& id);
  /// Adds a number or an object to the end record, before its status: a summary.
  void tell(const char* name, Json fact);
  /// `status`: that with which the tool exits, 0 or 1.
  void end(int status);

 private:
  void write_line(const Json& record);

  int fd_;
  std::mutex mutex_;  // guards records_ and told_
  std::string id_;
  std::uint64_t records_ = 0;
  HeldJson told_ = HeldJson::object();
};

}  // namespace vfm::io
