// SPDX-License-Identifier: Apache-2.0
#include "columns/caption/sidecar.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/units.h"
#include "io/file.h"
#include "io/folder.h"
#include "io/places.h"
#include "io/remote/address.h"
#include "text/unicode.h"

namespace vfm::columns {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{64} << 20;

std::vector<text::Cue> parse_sidecar(const std::string& bytes, const std::string& kind,
                                     const std::string& path, ColumnNotes& notes) {
  const std::string utf8 = text::to_utf8(bytes);
  if (kind == "json")
    return text::captions_of_json(parse_json(utf8, "'" + path + "'"), "'" + path + "'");
  if (kind == "txt") return {{0, std::numeric_limits<double>::infinity(), text::clean_line(utf8)}};
  text::SubRip srt = text::parse_srt(utf8);
  if (srt.malformed > 0)
    notes.errors.push_back({path,
                            fmt::format("the times of {} of {} cues cannot be read", srt.malformed,
                                        srt.cues.size() + static_cast<std::size_t>(srt.malformed)),
                            Cause::format});
  else if (srt.cues.empty() && !text::clean_line(utf8).empty())
    notes.errors.emplace_back(path, "has no cue: it is not SubRip", Cause::format);
  return std::move(srt.cues);
}

}  // namespace

std::string sidecar_path(const std::string& source, const std::string& kind) {
  const std::size_t slash = source.rfind('/'), dot = source.rfind('.');
  const std::size_t name = slash == std::string::npos ? 0 : slash + 1;
  const bool has_extension = dot != std::string::npos && dot > name;
  return (has_extension ? source.substr(0, dot) : source) + "." + kind;
}

Json sidecar_places(const io::Record& record, const std::vector<std::string>& folders) {
  const std::string from = io::dir_name(record.path());
  const auto named = [&](const Json& name) {
    return name.is_string() ? Json(io::name_from(from, name.get<std::string>())) : name;
  };
  Json places = {{"folders", Json::array()}};
  for (const std::string& folder : folders)
    places["folders"].push_back(named(folder));
  for (const char* name : {"source", "source_hash", "sources", "source_hashes"})
    if (const auto found = record.json->find(name); found != record.json->end())
      places[name] = *found;
  if (const auto found = places.find("source"); found != places.end()) *found = named(*found);
  if (const auto found = places.find("sources"); found != places.end())
    for (Json& source : *found)
      source = named(source);
  return places;
}

Sidecars::Sidecars(ColumnNotes& notes, const io::Record& record,
                   const std::vector<std::string>& folders)
    : notes_(notes), shard_(record.path()) {
  const auto list = [&](const char* name) {
    const auto found = record.json->find(name);
    return found != record.json->end() && found->is_array() ? *found : Json::array();
  };
  const auto name = [&](const Json& source, const Json& hash) {
    if (!source.is_string()) return;
    named_.insert(source.get<std::string>());
    if (hash.is_string()) called_[hash.get<std::string>()] = source.get<std::string>();
  };
  name(record.json->value("source", Json()), record.json->value("source_hash", Json()));
  const Json sources = list("sources"), hashes = list("source_hashes");
  for (std::size_t i = 0; i < sources.size(); ++i)
    name(sources[i], hashes.size() == sources.size() ? hashes[i] : Json());
  std::error_code error;
  for (const std::string& folder : folders) {
    if (io::is_bucket(folder))
      prefixes_.push_back(io::canonical_path(folder) + "/");
    else
      folders_.push_back(std::filesystem::canonical(folder, error));
  }
}

std::string Sidecars::video_of(const Json& facts) const {
  const auto called = called_.find(get_string(facts, "source_hash").value_or(""));
  return called != called_.end() ? called->second : get_string(facts, "source").value_or("");
}

bool Sidecars::may_read(const std::string& source, const std::string& path) {
  if (named_.contains(source)) return true;
  if (io::is_bucket(path))
    return std::ranges::any_of(prefixes_,
                               [&](const std::string& begin) { return path.starts_with(begin); });
  std::error_code error;
  const std::filesystem::path file =
      std::filesystem::weakly_canonical(std::filesystem::absolute(path, error), error);
  for (const std::filesystem::path& folder : folders_) {
    const auto [end, ignored] =
        std::mismatch(folder.begin(), folder.end(), file.begin(), file.end());
    if (!folder.empty() && end == folder.end()) return true;
  }
  if (io::file_exists(path) && !std::exchange(said_, true))
    log_warning(
        "'{}' is not read: only the samples of '{}' name its video, and no record does; --sidecars "
        "DIR allows files below DIR",
        path, shard_);
  return false;
}

const std::vector<text::Cue>& Sidecars::cues(const std::string& path, const std::string& kind) {
  const auto [at, is_new] = files_.try_emplace(path);
  if (!is_new) return at->second;
  notes_.inputs[path] = nullptr;
  if (!io::file_exists(path)) return at->second;
  try {
    if (const std::uint64_t size = io::File::open_regular(path).size(); size > kMostBytes) {
      notes_.inputs[path] = io::hash_file(path);
      fail_as(Cause::limit, "'{}' has {}, and captions beside a video are read up to {}", path,
              format_bytes(static_cast<double>(size)),
              format_bytes(static_cast<double>(kMostBytes)));
    }
    const std::string bytes = io::read_file(path);
    notes_.inputs[path] = hash_hex(bytes);
    at->second = parse_sidecar(bytes, kind, path, notes_);
  } catch (const Error& error) {
    notes_.errors.emplace_back(path, error, Cause::format);
  }
  return at->second;
}

std::optional<std::string> Sidecars::caption(const std::string& source, const std::string& kind,
                                             double begin, double end, double source_begin) {
  if (source.empty() || (io::is_url(source) && !io::is_bucket(source))) return std::nullopt;
  const std::string path = sidecar_path(source, kind);
  if (path == source || !may_read(source, path)) return std::nullopt;
  const double from = kind == "srt" ? source_begin : 0;
  return text::caption_of_span(cues(path, kind), begin - from, end - from);
}

}  // namespace vfm::columns
