// SPDX-License-Identifier: Apache-2.0
#include "dataset/known_sources.h"

#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "io/line_reader.h"
#include "io/packed.h"

namespace vfm::dataset {

std::string KnownSource::line() const {
  Json json = {{"source", name}};
  if (!path.empty()) json["path"] = path;
  if (!content.empty()) json["content"] = content;
  json["split"] = split;
  return dump_json(json) + "\n";
}

KnownSources KnownSources::read(const std::string& path, const std::string& folder) {
  KnownSources known(folder);
  io::LineReader lines(io::File::open_regular(path), "'" + path + "'");
  while (const auto line = lines.next()) {
    const std::string where = lines.where();
    const Json json = parse_json(*line, where);
    if (!json.is_object()) fail("{} is not a JSON object", where);
    known.put({need_string(json, "source", where), get_string(json, "path").value_or(""),
               get_string(json, "content").value_or(""), need_string(json, "split", where)});
  }
  return known;
}

void KnownSources::put(const KnownSource& source) {
  std::string record;
  io::put_ordered_text(record, source.name);
  io::put_ordered(record, names_.records(), 8);
  for (const std::string* text : {&source.path, &source.content, &source.split})
    io::put_text(record, *text);
  names_.add(record);
  if (source.path.empty()) return;
  record.clear();
  io::put_ordered_text(record, source.path);
  record += source.split;
  paths_.add(record);
}

KnownSources::Names::Names(KnownSources& known) : stream_(known.names_.sorted()) {
  read();
  pop();
}

void KnownSources::Names::read() {
  std::string_view rest;
  after_.reset();
  if (!stream_.next(rest)) return;
  after_.emplace();
  after_->name = io::take_ordered_text(rest);
  io::take_ordered(rest, 8);
  for (std::string* text : {&after_->path, &after_->content, &after_->split})
    *text = io::take_text(rest);
}

void KnownSources::Names::pop() {
  front_ = std::move(after_);
  read();
  while (front_ && after_ && after_->name == front_->name) {
    front_ = std::move(after_);
    read();
  }
}

KnownSources::Paths::Paths(KnownSources& known) : stream_(known.paths_.sorted()) {
  ended_ = !read();
}

bool KnownSources::Paths::read() {
  std::string_view rest;
  if (!stream_.next(rest)) return false;
  path_ = io::take_ordered_text(rest);
  split_ = rest;
  return true;
}

std::optional<std::string> KnownSources::Paths::find(const std::string& path) {
  while (!ended_ && path_ < path)
    ended_ = !read();
  if (!found_any_ || found_path_ != path) {
    if (ended_ || path_ != path) return std::nullopt;
    found_any_ = true;
    found_path_ = path;
    found_ = split_;
    for (; !ended_ && path_ == path; ended_ = !read())
      if (split_ != found_) found_.clear();
  }
  return found_;
}

}  // namespace vfm::dataset
