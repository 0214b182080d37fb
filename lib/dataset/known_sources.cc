// SPDX-License-Identifier: Apache-2.0
#include "dataset/known_sources.h"

#include <utility>

#include "base/error.h"
#include "io/line_reader.h"

namespace vfm::dataset {
namespace {

/// Where no source is named, vfm-shard takes the key.
bool named_by_key(const Item& item) {
  return item.source == item.key;
}

}  // namespace

KnownSources KnownSources::read(const std::string& path) {
  KnownSources known;
  io::LineReader lines(io::File::open_regular(path), "'" + path + "'");
  while (const auto line = lines.next()) {
    const std::string where = lines.where();
    const Json json = parse_json(*line, where);
    if (!json.is_object()) fail("{} is not a JSON object", where);
    known.add(need_string(json, "source", where),
              {get_string(json, "path").value_or(""), get_string(json, "content").value_or(""),
               need_string(json, "split", where)});
  }
  return known;
}

void KnownSources::add(const std::string& name, Source source) {
  if (!source.path.empty()) {
    const auto [at, added] = by_path_.emplace(source.path, source.split);
    if (!added && at->second != source.split) at->second.clear();
  }
  by_name_[name] = std::move(source);
}

std::optional<std::string> KnownSources::split_of(const Item& item) const {
  if (const auto found = by_name_.find(item.source); found != by_name_.end())
    return found->second.split;
  const auto found = by_path_.find(item.path);
  if (item.path.empty() || found == by_path_.end() || found->second.empty()) return std::nullopt;
  return found->second;
}

bool KnownSources::knows(const Item& item) const {
  const auto found = by_name_.find(item.source);
  if (found == by_name_.end()) return !item.path.empty() && by_path_.contains(item.path);
  return !named_by_key(item) || found->second.content == item.content;
}

void KnownSources::put(const Item& item, const std::string& split) {
  add(item.source, {item.path, named_by_key(item) ? item.content : "", split});
}

std::string KnownSources::lines() const {
  std::string lines;
  for (const auto& [name, source] : by_name_) {
    Json json = {{"source", name}};
    if (!source.path.empty()) json["path"] = source.path;
    if (!source.content.empty()) json["content"] = source.content;
    json["split"] = source.split;
    lines += dump_json(json) + "\n";
  }
  return lines;
}

}  // namespace vfm::dataset
