// SPDX-License-Identifier: Apache-2.0
#include "clip/store/files.h"

#include <fcntl.h>

#include <cerrno>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "io/atomic_file.h"
#include "io/folder.h"
#include "io/line_reader.h"
#include "shard/columns.h"

namespace vfm::clip {

ClipFiles::ClipFiles(std::string directory, const std::string& name, Json settings)
    : ClipStore(std::move(directory), name, name + ".files", std::move(settings)) {}

std::string ClipFiles::path_of(const Json& sample, const Json& file) const {
  const std::string name =
      need_string(sample, "key", "the list") + "." + need_string(file, "extension", "the list");
  if (name.find('/') != std::string::npos) fail("'{}' cannot be the name of a clip", name);
  return io::join_path(directory_, name);
}

/// Returns true if the sample's files have the right sizes and, with `by_hash`, the right hashes.
bool ClipFiles::whole(const Json& sample, bool by_hash) const {
  for (const Json& file : sample.at("files")) {
    const std::string path = path_of(sample, file);
    if (!io::file_exists(path) ||
        io::File::open_regular(path).size() != file.at("bytes").get<std::uint64_t>())
      return false;
    if (by_hash && io::hash_file(path) != file.at("xxh3").get<std::string>()) return false;
  }
  return true;
}

void ClipFiles::check_files(const Json& found) const {
  for (const Json& sample : found.at("samples"))
    if (!whole(sample, false))
      fail("the files of '{}' are not as they were written", need_string(sample, "key", "a clip"));
}

/// Removes the sample's files and their temporary files, which a killed writer may have left.
void ClipFiles::remove(const Json& sample) const {
  for (const Json& file : sample.at("files")) {
    const std::string path = path_of(sample, file);
    io::remove_file(path);
    remove_temporary_of(path);
  }
}

void ClipFiles::note(const Json& line) {
  const std::string text = dump_json(line) + "\n";
  journal_.write_all(text.data(), text.size());
}

/// Returns the lines of the journal before the first damaged line.
std::vector<Json> ClipFiles::read_journal() const {
  std::vector<Json> lines;
  const std::string path = kept_journal_ ? kept_journal_->local() : notes_path();
  if (!io::file_exists(path)) return lines;
  io::LineReader reader(io::File::open_read(path), "'" + path + "'");
  try {
    while (const auto line = reader.next())
      lines.push_back(parse_json(*line, reader.where()));
  } catch (const Error& error) {
    log_info("{}", error.what());
  }
  return lines;
}

KeptClips ClipFiles::begin(bool keep) {
  KeptClips kept;
  found_.clear();
  listed_ = Json::array();
  samples_ = 0;
  kept_journal_.emplace(notes_path());
  std::vector<Json> lines = read_journal();
  const bool same = keep && !lines.empty() && lines[0] == Json{{"settings", settings_}};
  bool unbroken = true;
  for (const Json& line : lines) {
    if (!line.is_object() || !line.contains("key")) continue;
    if (line.contains("end")) {
      unbroken = unbroken && same && whole(line, true);
      if (unbroken) {
        kept.push_back({need_integer(line, "begin", "the journal"),
                        need_integer(line, "end", "the journal"), line.at("key")});
        found_.push_back(line);
        continue;
      }
    }
    // A line announces files before they are written. If the next line does not say that they are
    // complete, they are removed.
    const bool next_says_whole = &line != &lines.back() && (&line + 1)->contains("end") &&
                                 line.at("key") == (&line + 1)->value("key", "");
    if (!next_says_whole) remove(line);
  }
  if (io::file_exists(index_path())) {
    const std::string path = index_path();
    try {
      const Json old = parse_json(io::read_file(path), path);
      for (const Json& sample : old.at("samples"))
        remove(sample);
    } catch (const std::exception& error) {
      log_info("'{}' is remade: {}", path, error.what());
    }
    io::remove_file(path);
  }
  // Write the journal again, only with kept samples.
  std::string text = dump_json(Json{{"settings", settings_}}) + "\n";
  for (const Json& sample : found_)
    text += dump_json(sample) + "\n";
  const std::string& local = kept_journal_->local();
  io::write_file(local, text);
  const int fd = ::open(local.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (fd < 0) fail_errno(errno, "cannot open '{}'", local);
  journal_ = io::File(fd, local);
  kept_journal_->put();
  return kept;
}

std::vector<std::string> ClipFiles::own_files(const Json& index, const InUse& in_use) {
  std::vector<std::string> files = shard::column_files(index_path());
  const auto add = [&](const Json& sample) {
    if (in_use(need_string(sample, "key", "the list"))) return;
    for (const Json& file : sample.at("files")) {
      files.push_back(path_of(sample, file));
      check_own(files.back(), file.at("bytes").get<std::uint64_t>());
    }
  };
  if (!index.is_null())
    for (const Json& sample : index.at("samples"))
      add(sample);
  for (const Json& line : read_journal())
    if (line.is_object() && line.contains("key")) add(line);
  return files;
}

std::string ClipFiles::notes_of_removal(const Json& index) const {
  std::string text = dump_json(Json{{"settings", nullptr}}) + "\n";
  for (const Json& sample : index.at("samples"))
    text += dump_json(sample) + "\n";
  return text;
}

void ClipFiles::write_kept() {
  Json sample = std::move(found_.front());
  found_.pop_front();
  listed_->push_back({{"key", sample.at("key")}, {"files", sample.at("files")}});
}

void ClipFiles::write(const shard::Sample& sample) {
  Json entry = {{"key", sample.key}, {"files", Json::array()}};
  for (const shard::Member& member : sample.members)
    entry["files"].push_back({{"extension", member.extension},
                              {"bytes", member.data.size()},
                              {"xxh3", hash_hex(member.data)}});
  note(entry);
  for (const shard::Member& member : sample.members)
    io::write_file(io::join_path(directory_, sample.key + "." + member.extension), member.data);
  listed_->push_back(entry);
  const Json facts = parse_json(*sample.find("json"), sample.key);
  entry["begin"] = get_integer(facts, "pts_begin").value_or(0);
  entry["end"] = get_integer(facts, "pts_end").value_or(0);
  note(entry);
  constexpr std::uint64_t kPut = std::uint64_t{256} << 20;
  for (const shard::Member& member : sample.members)
    unput_ += member.data.size();
  if (unput_ < kPut) return;
  kept_journal_->put();
  unput_ = 0;
}

void ClipFiles::end(Json& summary) {
  summary["settings"] = settings_;
  summary["clips"] = samples_;
  summary["list"] = io::base_name(index_path());
  summary["samples"] = listed_;
  journal_.close();
}

void ClipFiles::end_notes() {
  if (kept_journal_)
    kept_journal_->remove();
  else
    ClipStore::end_notes();
}

}  // namespace vfm::clip
