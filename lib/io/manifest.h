// The manifest: JSON Lines between the tools (vfm-manifest(5)).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "io/file.h"
#include "io/input_lines.h"

namespace vfm::io {

/// One line of a manifest. A bare path or URL becomes {"kind": K, "path": P}, K by its extension:
/// "shard" for .tar, .tar.gz and the like and .files (vfm-clip --format files), else "video".
struct Record {
  std::string kind;   ///< "video", "shard", "checkpoint", "clip", ...
  Json json;          ///< the whole object, unknown keys included, in their order
  std::string where;  ///< for messages: "line 3 of standard input", "argument 'a.mp4'"

  std::string path() const { return need_string(json, "path", where); }
};

/// The tars that hold a shard's columns, in the order of its "columns" map, each path once; a shard
/// without "columns" is its own path.
std::vector<std::string> column_tars(const Record& shard);

/// Parses one line: JSON object, or bare path. Throws Error on anything else: other JSON, no
/// "kind", wrong types, control characters in a path. What begins as an object could (a brace and
/// a quote) is one, or damaged; "[x].mp4" and "{x}.mp4" are paths. Pure; the fuzz target calls it.
Record parse_record(std::string_view line, std::string_view where);

/// Reads records from command line arguments (io/input_lines.h): each is a video or shard path or
/// URL, or a manifest file (".jsonl", ".ndjson"), or "-" for lines on standard input, or kNames. A
/// bad line, or one over 16 MiB, is not fatal: `on_bad` hears of it, and reading goes on.
/// Thread-safety: one thread at a time.
class ManifestReader {
 public:
  using OnBad = std::function<void(const std::string& where, const std::string& message)>;
  ManifestReader(std::vector<std::string> arguments, OnBad on_bad);
  /// The next record, or nothing at the end. Throws Error when standard input cannot be read,
  /// Stopped after a signal.
  std::optional<Record> next();
  const InputStreams& streams() const { return lines_.streams(); }

 private:
  InputLines lines_;
  OnBad on_bad_;
};

/// Writes records to a descriptor, one line each, at once (a record is a promise that the thing it
/// names is durable). What a tool writes to standard output stands between begin() and end(), which
/// cli::run calls: without an end its readers know that it was killed, or failed.
/// Thread-safety: any thread, line by line.
class ManifestWriter {
 public:
  /// Standard output by default. Does not own the descriptor.
  explicit ManifestWriter(int fd = 1) : fd_(fd) {}
  /// Throws Error, as the others, when the line cannot be written (closed pipe, full disk).
  void write(const Json& record);
  void begin(std::string_view tool, const std::string& id);
  /// `status`: that with which the tool exits, 0 or 1.
  void end(int status);

 private:
  void write_line(const Json& record);

  int fd_;
  std::mutex mutex_;  // guards records_
  std::string id_;
  std::uint64_t records_ = 0;
};

/// errors.jsonl: what was skipped, and why. One record an item, in the order of add(). The file
/// appears at finish() and only if there was an error; that of an earlier run is replaced, or
/// removed if there was none. What a program writes there that works beside this one stays.
/// Each is also one warning line, at once. Thread-safety: any thread; call add() from the ordered
/// side of for_each_ordered, so that the file does not depend on -j.
class ErrorLog {
 public:
  /// `tool` is the program's name, stored in each record.
  ErrorLog(std::string path, std::string tool);
  ~ErrorLog();
  /// Records {"tool":…, "input":…, "error":…} plus `extra`'s members, and warns "INPUT: MESSAGE".
  void add(const std::string& input, const std::string& message,
           const Json& extra = Json::object());
  std::size_t count() const;
  void finish();

 private:
  std::string others_lines() const;

  std::string path_, tool_;
  std::string before_;  // what stood at path_ when this run began
  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
};

}  // namespace vfm::io
