// SPDX-License-Identifier: Apache-2.0
#include "io/manifest.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/address.h"
#include "base/error.h"
#include "base/full_disk.h"
#include "base/input_limits.h"
#include "base/json.h"
#include "base/utf8.h"
#include "io/file.h"
#include "io/held_begin.h"
#include "io/places.h"
#include "io/remote/address.h"
#include "io/wrong_address.h"
#include "io/zstd_reader.h"

namespace vfm::io {
namespace {

std::string_view trim(std::string_view text) {
  const char* blanks = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(blanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

/// Returns true for a tar, compressed or not, and for a list of the files of a tar (.files).
bool is_tar_name(std::string_view path) {
  const std::string name = base_name(path);
  for (const std::string_view end :
       {".tar", ".tgz", ".tar.gz", ".tar.zst", ".tar.bz2", ".tar.xz", ".tar.lz4", ".files"})
    if (name.size() > end.size() && name.ends_with(end)) return true;
  return false;
}

Record bare_path(std::string_view path, std::string_view where) {
  if (!is_utf8(path)) fail("{}", no_utf8_message(path));
  Record record;
  record.kind = is_tar_name(path) ? "shard" : "video";
  record.json = Json{{"kind", record.kind}, {"path", std::string(path)}};
  record.where = where;
  return record;
}

/// Returns true for a brace, followed by a quote, another brace or nothing. So a record that was
/// cut off is not taken for a path.
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

/// Replaces characters that control a terminal by JSON escapes such as \u009b, because a terminal
/// may show the line. In JSON, only strings contain such characters.
std::string without_steering(const std::string& line) {
  std::string out;
  std::size_t done = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const std::size_t bytes = steering_character(std::string_view(line).substr(i));
    if (bytes == 0) continue;
    const unsigned number = character_number(std::string_view(line).substr(i));
    out.append(line, done, i - done).append(fmt::format("\\u{:04x}", number));
    done = i + bytes;
    i = done - 1;
  }
  return out.append(line, done);
}

std::string as_line(const Json& record) {
  return without_steering(dump_json(record)) + "\n";
}

bool is_manifest_file(const std::string& argument) {
  return (!is_url(argument) || is_remote(argument)) && is_manifest_name(argument);
}

}  // namespace

bool is_manifest_name(std::string_view path) {
  if (is_zstd_name(path)) path.remove_suffix(kZstdEnd.size());
  const std::string end = extension(path);
  return end == "jsonl" || end == "ndjson";
}

Record parse_record(std::string_view line, std::string_view where) {
  line = trim(line);
  if (line.empty()) fail("{} is empty", where);
  if (!looks_like_object(line)) {
    if (is_other_json(line)) fail("{} is JSON but not an object", where);
    // A path may have any character, but in a line these are rather signs of another kind of file.
    for (const char c : line)
      if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
        fail("{} is neither a JSON object nor a path", where);
    return bare_path(line, where);
  }
  Record record;
  record.json = parse_json(line, where);
  record.where = where;
  record.kind = need_string(record.json, "kind", where);
  if (record.json->contains("path")) {
    const std::string path = record.path();  // throws if it is not a string
    if (path.find('\0') != std::string::npos) fail("the path of {} holds a NUL", where);
  }
  if (const auto columns = record.json->find("columns"); columns != record.json->end()) {
    if (!columns->is_object()) fail("'columns' of {} is not an object", where);
    for (const auto& [name, path] : columns->items())
      if (!path.is_string()) fail("column '{}' of {} is not a path", name, where);
  }
  return record;
}

std::vector<std::string> column_tars(const Record& shard) {
  std::vector<std::string> tars;
  if (const auto columns = shard.json->find("columns"); columns != shard.json->end())
    for (const auto& path : *columns)
      if (std::find(tars.begin(), tars.end(), path.get<std::string>()) == tars.end())
        tars.push_back(path.get<std::string>());
  if (tars.empty()) tars.push_back(shard.path());
  return tars;
}

namespace {

std::string refused_address(const Record& record) {
  const std::string path = get_string(record.json, "path").value_or("");
  const bool shard = record.kind == "shard";
  std::string refused =
      shard ? no_file_message(path) : no_video_message(path, input_limits().protocols);
  if (refused.empty()) refused = wrong_address(path);
  if (const auto columns = record.json->find("columns"); shard && columns != record.json->end())
    for (const Json& column : *columns) {
      if (refused.empty()) refused = no_file_message(column.get<std::string>());
      if (refused.empty()) refused = wrong_address(column.get<std::string>());
    }
  return refused;
}

}  // namespace

ManifestReader::ManifestReader(std::vector<std::string> arguments, OnFault on_bad)
    : lines_(std::move(arguments), is_manifest_file), on_bad_(std::move(on_bad)) {}

void ManifestReader::name_from_here(Record& record) const {
  const std::string folder = lines_.streams().folder();
  if (folder.empty()) return;
  const auto set = [&](Json& name) {
    if (name.is_string() && !name.get_ref<const std::string&>().empty())
      name = named_from(folder, name.get<std::string>());
  };
  for (const char* name : {"path", "source"})
    if (const auto found = record.json->find(name); found != record.json->end()) set(*found);
  for (const char* name : {"columns", "sources"})
    if (const auto found = record.json->find(name); found != record.json->end())
      for (Json& each : *found)
        set(each);
}

std::optional<Record> ManifestReader::next() {
  while (const auto line = lines_.next()) {
    try {
      if (!line->error.empty()) {
        on_bad_({line->where, line->error, Cause::line});
        continue;
      }
      Record record =
          line->as_is ? bare_path(line->text, line->where) : parse_record(line->text, line->where);
      if (!line->as_is) name_from_here(record);
      const std::string refused = refused_address(record);
      if (refused.empty()) return record;
      on_bad_({get_string(record.json, "path").value_or(line->where), refused, Cause::refused});
    } catch (const Error& error) {
      on_bad_({line->where, error, Cause::line});
    }
  }
  return std::nullopt;
}

void ManifestWriter::write(const Json& record) {
  const std::lock_guard lock(mutex_);
  write_held_begin();
  write_line(record);
  ++records_;
}

void ManifestWriter::begin(std::string_view tool, const std::string& id) {
  const std::lock_guard lock(mutex_);
  id_ = id;
  hold_begin(fd_, as_line(begin_record(tool, id, working_folder())));
}

void ManifestWriter::tell(const char* name, Json fact) {
  const std::lock_guard lock(mutex_);
  told_[name] = std::move(fact);
}

void ManifestWriter::end(int status) {
  const std::lock_guard lock(mutex_);
  write_held_begin();
  write_line(end_record(id_, records_, told_, status));
}

void ManifestWriter::write_line(const Json& record) {
  const std::string line = as_line(record);
  std::string_view rest = line;
  while (!rest.empty()) {
    const ssize_t put = ::write(fd_, rest.data(), rest.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) fail_output(errno, "cannot write standard output");
    rest.remove_prefix(static_cast<std::size_t>(put));
  }
}

}  // namespace vfm::io
