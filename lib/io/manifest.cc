// SPDX-License-Identifier: Apache-2.0
#include "io/manifest.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "base/error.h"
#include "base/full_disk.h"
#include "base/log.h"
#include "io/atomic_file.h"
#include "io/line_reader.h"

namespace vfm::io {
namespace {

std::string_view trim(std::string_view text) {
  const char* blanks = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(blanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

/// A tar, compressed or not, or a list of files that would make one.
bool is_tar_name(std::string_view path) {
  const std::string name = base_name(path);
  for (const std::string_view end :
       {".tar", ".tgz", ".tar.gz", ".tar.zst", ".tar.bz2", ".tar.xz", ".tar.lz4", ".files"})
    if (name.size() > end.size() && name.ends_with(end)) return true;
  return false;
}

Record bare_path(std::string_view path, std::string_view where) {
  Record record;
  record.kind = is_tar_name(path) ? "shard" : "video";
  record.json = {{"kind", record.kind}, {"path", std::string(path)}};
  record.where = where;
  return record;
}

/// A brace, and after it what JSON has there, or nothing. So a record that was cut off is no path.
bool looks_like_object(std::string_view line) {
  if (line.front() != '{') return false;
  line = trim(line.substr(1));
  return line.empty() || line.front() == '"' || line == "}";
}

bool is_other_json(std::string_view line) {
  if (line.front() != '[' && line.front() != '"' && line.front() != '{') return false;
  try {
    parse_json(line, "the line");
    return true;
  } catch (const Error&) {
    return false;
  }
}

bool is_manifest_file(const std::string& argument) {
  const std::string ext = extension(argument);
  return !is_url(argument) && (ext == "jsonl" || ext == "ndjson");
}

}  // namespace

Record parse_record(std::string_view line, std::string_view where) {
  line = trim(line);
  if (line.empty()) fail("{} is empty", where);
  if (!looks_like_object(line)) {
    if (is_other_json(line)) fail("{} is JSON but not an object", where);
    // A path may hold any character, but in a line these are rather signs of another kind of file.
    for (const char c : line)
      if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
        fail("{} is neither a JSON object nor a path", where);
    return bare_path(line, where);
  }
  Record record;
  record.json = parse_json(line, where);
  record.where = where;
  record.kind = need_string(record.json, "kind", where);
  if (record.json.contains("path")) record.path();  // throws if it is not a string
  if (const auto columns = record.json.find("columns"); columns != record.json.end()) {
    if (!columns->is_object()) fail("'columns' of {} is not an object", where);
    for (const auto& [name, path] : columns->items())
      if (!path.is_string()) fail("column '{}' of {} is not a path", name, where);
  }
  return record;
}

std::vector<std::string> column_tars(const Record& shard) {
  std::vector<std::string> tars;
  if (const auto columns = shard.json.find("columns"); columns != shard.json.end())
    for (const auto& path : *columns)
      if (std::find(tars.begin(), tars.end(), path.get<std::string>()) == tars.end())
        tars.push_back(path.get<std::string>());
  if (tars.empty()) tars.push_back(shard.path());
  return tars;
}

struct ManifestReader::Source {
  LineReader lines;
  bool names;  // paths, whatever they look like
};

ManifestReader::ManifestReader(std::vector<std::string> arguments, OnBad on_bad)
    : arguments_(std::move(arguments)), on_bad_(std::move(on_bad)) {}
ManifestReader::~ManifestReader() = default;

bool ManifestReader::next_source() {
  const std::string& argument = arguments_[next_argument_];
  if (argument != "-" && argument != kNames && !is_manifest_file(argument)) return false;
  ++next_argument_;
  try {
    if (argument == "-" || argument == kNames)
      source_ = std::make_unique<Source>(
          Source{LineReader::standard_input(argument == kNames ? '\0' : '\n'), argument == kNames});
    else
      source_ = std::make_unique<Source>(
          Source{LineReader(File::open_read(argument), fmt::format("'{}'", argument)), false});
  } catch (const Error& error) {
    on_bad_(argument, error.what());
  }
  return true;
}

std::optional<Record> ManifestReader::next() {
  for (;;) {
    if (!source_) {
      if (next_argument_ == arguments_.size()) return std::nullopt;
      if (!next_source()) {
        const std::string& path = arguments_[next_argument_++];
        return bare_path(path, fmt::format("argument '{}'", path));
      }
      if (!source_) continue;  // it could not be opened
    }
    if (auto record = next_line()) return record;
  }
}

/// Nothing: the line is none for the caller, or there is none; then source_ is gone.
std::optional<Record> ManifestReader::next_line() {
  LineReader& lines = source_->lines;
  std::optional<std::string> text;
  try {
    text = lines.next();
  } catch (const LongLine& error) {
    streams_.take_bad("", lines.name());
    on_bad_(lines.where(), error.what());
    return std::nullopt;
  }
  if (!text) {
    source_.reset();
    return std::nullopt;
  }
  const std::string where = lines.where();
  if (source_->names && !text->empty()) return bare_path(*text, where);
  if (trim(*text).empty()) return std::nullopt;
  try {
    Record record = parse_record(*text, where);
    if (!streams_.take(record.json, lines.name())) return record;
  } catch (const Error& error) {
    streams_.take_bad(*text, lines.name());
    on_bad_(where, error.what());
  }
  return std::nullopt;
}

void ManifestWriter::write(const Json& record) {
  const std::lock_guard lock(mutex_);
  write_line(record);
  ++records_;
}

void ManifestWriter::begin(std::string_view tool, const std::string& id) {
  const std::lock_guard lock(mutex_);
  id_ = id;
  write_line(begin_record(tool, id));
}

void ManifestWriter::end(int status) {
  const std::lock_guard lock(mutex_);
  write_line(end_record(id_, records_, status));
}

void ManifestWriter::write_line(const Json& record) {
  const std::string line = dump_json(record) + "\n";
  std::string_view rest = line;
  while (!rest.empty()) {
    const ssize_t put = ::write(fd_, rest.data(), rest.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) fail_output(errno, "cannot write standard output");
    rest.remove_prefix(static_cast<std::size_t>(put));
  }
}

ErrorLog::ErrorLog(std::string path, std::string tool)
    : path_(std::move(path)), tool_(std::move(tool)) {}
ErrorLog::~ErrorLog() = default;

void ErrorLog::add(const std::string& input, const std::string& message, const Json& extra) {
  Json record = {{"tool", tool_}, {"input", input}, {"error", message}};
  for (const auto& [name, value] : extra.items())
    record[name] = value;
  {
    const std::lock_guard lock(mutex_);
    lines_.push_back(dump_json(record) + "\n");
  }
  // Most messages quote the input already.
  if (message.find(input) != std::string::npos)
    log_warning("{}", message);
  else
    log_warning("{}: {}", input, message);
}

std::size_t ErrorLog::count() const {
  const std::lock_guard lock(mutex_);
  return lines_.size();
}

void ErrorLog::finish() {
  const std::lock_guard lock(mutex_);
  if (lines_.empty()) {
    if (::unlink(path_.c_str()) != 0 && errno != ENOENT)
      fail_errno(errno, "cannot remove '{}'", path_);
    return;
  }
  std::string text;
  for (const std::string& line : lines_)
    text += line;
  update_file(path_, text);
}

}  // namespace vfm::io
