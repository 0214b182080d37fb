// SPDX-License-Identifier: Apache-2.0
#include "clip/store/leftovers.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <memory>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/stop.h"
#include "clip/cut/images.h"
#include "clip/store/store.h"
#include "io/atomic_file.h"
#include "io/file.h"
#include "io/folder.h"
#include "io/line_reader.h"
#include "io/remote/address.h"

namespace vfm::clip {
namespace {

constexpr std::size_t kMostTold = 100;

struct Trace {
  std::string_view before, after;
  ClipFormat format;
  bool finished;
};

/// Files that identify a source: indexes of finished sources, and notes of unfinished sources.
constexpr std::array<Trace, 5> kTraces = {{{"", ".json", ClipFormat::shards, true},
                                           {"", ".files", ClipFormat::files, true},
                                           {".", ".settings", ClipFormat::shards, false},
                                           {".", ".parts", ClipFormat::shards, false},
                                           {".", ".journal", ClipFormat::files, false}}};

/// Returns NAME of "NAME.json", ".NAME.settings" and so on: 16 hexadecimal digits, or "joined-" and
/// 16 digits. Returns an empty string for other files.
std::string name_in(std::string_view file, const Trace& trace) {
  constexpr std::size_t kDigits = 16;
  if (!file.starts_with(trace.before) || !file.ends_with(trace.after) ||
      file.size() < trace.before.size() + kDigits + trace.after.size())
    return {};
  file.remove_prefix(trace.before.size());
  file.remove_suffix(trace.after.size());
  std::string_view digits = file;
  if (digits.starts_with(kJoinedName)) digits.remove_prefix(kJoinedName.size());
  const bool is_name = digits.size() == kDigits &&
                       digits.find_first_not_of("0123456789abcdef") == std::string_view::npos;
  return is_name ? std::string(file) : std::string();
}

/// Returns the source of a file that vfm-clip wrote. Throws if another program wrote the file.
std::string source_in(const std::string& path, const Trace& trace) {
  if (trace.finished) {
    const Json index = parse_json(io::read_file(path), path);
    const std::string kind = need_string(index, "kind", path);
    if ((kind != "clips" && kind != "images" && kind != "joined") ||
        !index.at("settings").is_object())
      fail("'{}' does not list clips", path);
    if (kind == "joined") return "a batch of joined videos";
    return kind == "images" ? "pictures" : get_string(index, "source").value_or("");
  }
  io::LineReader reader(io::File::open_read(path), "'" + path + "'");
  const std::optional<std::string> line = reader.next();
  const Json notes = parse_json(line.value_or(""), path);
  if (!notes.contains("recipe") && !notes.contains("removed") && !notes.contains("settings"))
    fail("'{}' is not of vfm-clip", path);
  return "a run that did not end";
}

/// Returns true if another program is making the clips of the source.
bool is_made(const std::string& directory, const std::string& name, const Trace& trace) {
  const std::string index = name + (trace.format == ClipFormat::files ? ".files" : ".json");
  if (!io::file_exists(io::join_path(directory, "." + index + ".tmp"))) return false;
  try {
    io::AtomicFile{io::join_path(directory, index)};
    return false;
  } catch (const Error&) {
    return true;
  }
}

using LeftNames = std::set<std::pair<std::string, ClipFormat>>;

/// Calls `found` with the path, name and trace of each file whose source is not in `names`. Stops
/// when `found` returns false.
template <class Found>
void each_left(const std::string& directory, const io::FirstNames& names, const Found& found) {
  for (const io::FolderEntry& entry : io::entries(directory)) {
    for (const Trace& trace : kTraces) {
      const std::string name = name_in(entry.name, trace);
      if (name.empty() || names.find(name)) continue;
      const std::string path = io::join_path(directory, entry.name);
      if (!io::is_bucket(path) && !io::is_file(path)) continue;
      check_stop();
      if (!found(path, name, trace)) return;
    }
  }
}

/// Returns the sources that are not in `names` and that no other program is working on. Files that
/// vfm-clip did not write are ignored.
LeftNames names_left(const std::string& directory, const io::FirstNames& names) {
  LeftNames left;
  each_left(directory, names,
            [&](const std::string& path, const std::string& name, const Trace& trace) {
              if (!trace.finished && is_made(directory, name, trace)) return true;
              try {
                const std::string source = source_in(path, trace);
                log_info("'{}' is not of this input: {}", path, source);
                left.insert({name, trace.format});
              } catch (const std::exception& error) {
                log_info("'{}' is left alone: {}", path, error.what());
              }
              return true;
            });
  return left;
}

std::string sources_of(std::size_t count) {
  return count == 1 ? "1 source" : fmt::format("{} sources", count);
}

std::string sources_of(const LeftNames& names) {
  std::set<std::string> sources;
  for (const auto& [name, format] : names)
    sources.insert(name);
  return sources_of(sources.size());
}

}  // namespace

Leftovers::Leftovers(std::string directory, bool readable)
    : directory_(std::move(directory)), readable_(readable), names_(directory_) {}

void Leftovers::see(const ClipItem& item) {
  if (item.kind == ClipItem::Kind::bad || item.unread) {
    if (unknown_.empty()) unknown_ = fmt::format("'{}' was not read", item.input);
  } else if (item.kind == ClipItem::Kind::passed) {
    // A shard of the output folder must stay, but its record does not name its sources.
    const Json& record = item.sources[0].record;
    const std::string path = get_string(record, "path").value_or("");
    if (unknown_.empty() && get_string(record, "kind") == "shard" && !path.empty() &&
        io::file_exists(io::join_path(directory_, io::base_name(path))))
      unknown_ = fmt::format("'{}' is in the input, and not its source", path);
  } else if (item.kind != ClipItem::Kind::duplicate) {  // a video, pictures, joined videos
    names_.put(store_name(item), "");
    if (item.kind == ClipItem::Kind::images)
      for (const ClipSource& source : item.sources)
        names_.put(image_key(source.path, source.hash, readable_), "");
    any_ = true;
  }
}

/// Decides by names only, so files of other programs with such names count, too.
void Leftovers::tell() const {
  if (log_level() < LogLevel::info) return;
  std::set<std::string> left;
  try {
    each_left(directory_, names_,
              [&](const std::string&, const std::string& name, const Trace& trace) {
                if (trace.finished || !is_made(directory_, name, trace)) left.insert(name);
                return left.size() <= kMostTold;
              });
  } catch (const Error&) {
    return;  // another program is removing files
  }
  if (!left.empty())
    log_info("'{}' holds the output of {}{} that the input does not name", directory_,
             left.size() > kMostTold ? "more than " : "",
             sources_of(std::min(left.size(), kMostTold)));
}

void Leftovers::finish(bool remove, const std::string& broken_off, io::ErrorLog& errors) {
  const std::string why = !broken_off.empty() ? broken_off
                          : !any_             ? std::string("the input names no source")
                                              : unknown_;
  if (!why.empty()) {
    if (remove)
      errors.add(
          {directory_, fmt::format("--prune removed nothing: {}, so it is unknown what "
                                   "is left over",
                                   why)});
    return;
  }
  if (!remove) return tell();
  const auto in_use = [&](const std::string& key) { return names_.find(key).has_value(); };
  LeftNames left;
  try {
    left = names_left(directory_, names_);
  } catch (const Error& error) {
    errors.add({directory_, fmt::format("--prune removed nothing: {}", error.what())});
    return;
  }
  if (left.empty()) return;
  for (auto one = left.begin(); one != left.end();) {
    check_stop();
    try {
      make_clip_store(one->second, directory_, one->first, nullptr, 0)->remove(in_use);
      ++one;
    } catch (const Error& error) {
      errors.add({io::join_path(directory_, one->first), fmt::format("is left: {}", error.what())});
      one = left.erase(one);
    } catch (const Json::exception& error) {
      errors.add({io::join_path(directory_, one->first), fmt::format("is left: {}", error.what())});
      one = left.erase(one);
    }
  }
  if (!left.empty())
    log_warning("removed from '{}' the output of {} that the input does not name", directory_,
                sources_of(left));
}

}  // namespace vfm::clip
