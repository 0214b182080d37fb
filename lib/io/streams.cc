// SPDX-License-Identifier: Apache-2.0
#include "io/streams.h"

#include <algorithm>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"

namespace vfm::io {
namespace {

constexpr std::string_view kBegin = R"({"kind":"begin",)";

/// Messages quote the name, so it must be as plain as the tools write it.
std::string need_name(const Json& record, const char* key) {
  constexpr std::size_t kLongest = 100;
  std::string name = need_string(record, key, "the record");
  const auto plain = [](char c) { return c > ' ' && c < 0x7f; };
  if (name.empty() || name.size() > kLongest || !std::all_of(name.begin(), name.end(), plain))
    fail("'{}' of a begin or end record is not a plain name of up to {} characters", key, kLongest);
  return name;
}

/// Returns the begin or end record in `line`, or null. Parses few lines.
Json mark_in(std::string_view line) {
  const auto has = [&](std::string_view text) { return line.find(text) != std::string_view::npos; };
  const std::size_t start = line.find_first_not_of(" \t");
  if (start == std::string_view::npos || line[start] != '{' || !has("\"kind\"")) return nullptr;
  if (!has("\"begin\"") && !has("\"end\"")) return nullptr;
  try {
    Json record = parse_json(line, "the line");
    const Json kind = record.value("kind", Json());
    return kind == "begin" || kind == "end" ? record : Json();
  } catch (const Error&) {
    return nullptr;  // The reader of the line reports the error.
  }
}

}  // namespace

Json begin_record(std::string_view tool, std::string_view id, const std::string& folder) {
  Json record = {{"kind", "begin"}, {"tool", tool}, {"id", id}};
  if (!folder.empty()) record["folder"] = folder;
  return record;
}

Json end_record(std::string_view id, std::uint64_t records, const Json& told, int status) {
  Json record = {{"kind", "end"}, {"id", id}, {"records", records}};
  record.update(told);
  record["status"] = status;
  return record;
}

bool InputStreams::take(std::string_view line, const std::string& source) {
  const Json record = mark_in(line);
  if (record.is_null()) {
    // If several tools write into one pipe at once, the line may count in the wrong stream. The
    // count is only reported, with -v.
    if (!open_.empty()) ++open_.back().records;
    begin_inside(line, source);
    return false;
  }
  if (record.at("kind") == "begin")
    begin(record, source);
  else
    end(record);
  return true;
}

void InputStreams::begin_inside(std::string_view line, const std::string& source) {
  const std::size_t at = line.rfind(kBegin);
  if (at == std::string_view::npos || at == 0) return;
  try {
    begin(parse_json(line.substr(at), "the line"), source);
  } catch (const Error&) {
    return;  // Not a begin record.
  }
}

void InputStreams::begin(const Json& record, const std::string& source) {
  Stream stream{need_name(record, "tool"), need_name(record, "id"),
                get_string(record, "folder").value_or(""), source};
  if (!stream.folder.empty() && stream.folder.front() != '/')
    fail("the folder of the begin record is not absolute: '{}'", stream.folder);
  if (open_.size() == kMostOpen) fail("{} streams have begun and none has ended", kMostOpen);
  open_.push_back(std::move(stream));
}

std::string InputStreams::folder() const {
  if (open_.empty()) return "";
  for (const Stream& stream : open_)
    if (stream.folder != open_.back().folder)
      fail(
          "{} was started in '{}' and {} in '{}', and both write here at once: from which of them "
          "files are named cannot be told",
          stream.tool, stream.folder, open_.back().tool, open_.back().folder);
  return open_.back().folder == here_ ? "" : open_.back().folder;
}

void InputStreams::end(const Json& record) {
  const std::string id = need_name(record, "id");
  const std::int64_t announced = need_integer(record, "records", "the end record");
  const std::int64_t status = need_integer(record, "status", "the end record");
  const auto found = std::find_if(open_.rbegin(), open_.rend(),
                                  [&](const Stream& stream) { return stream.id == id; });
  if (found == open_.rend()) {
    remark("an end record has no begin before it: a filter took it, or it was cut off");
    return;
  }
  const auto came = static_cast<std::int64_t>(found->records);
  if (came < announced)
    remark(fmt::format("{} of the {} records of {} in {} did not come: a filter took them",
                       announced - came, announced, found->tool, found->source));
  if (came > announced)
    remark(fmt::format("{} records more than {} wrote came in {}", came - announced, found->tool,
                       found->source));
  if (status != 0)
    remark(fmt::format("{} ended with status {} in {}: it skipped a part of its input", found->tool,
                       status, found->source));
  open_.erase(std::next(found).base());
}

void InputStreams::remark(std::string text) {
  constexpr std::size_t kMost = 100;
  if (remarks_.size() < kMost) remarks_.push_back(std::move(text));
}

std::string InputStreams::broken_off() const {
  constexpr std::size_t kMostNamed = 3;
  if (open_.empty() || !missing_.empty()) return missing_;
  if (open_.size() == 1)
    return fmt::format("the output of {} broke off in {} (no end record)", open_[0].tool,
                       open_[0].source);
  std::string text;
  for (std::size_t i = 0; i < std::min(open_.size(), kMostNamed); ++i)
    text += fmt::format("{}of {} in {}", i == 0 ? "" : ", ", open_[i].tool, open_[i].source);
  if (open_.size() > kMostNamed) text += fmt::format(" and {} more", open_.size() - kMostNamed);
  return fmt::format("the outputs {} broke off (no end records)", text);
}

void InputStreams::check_whole(std::string_view outcome) const {
  for (const std::string& text : remarks_)
    log_info("{}", text);
  if (const std::string why = broken_off(); !why.empty())
    fail("{}: {}; run the same command again", why, outcome);
}

}  // namespace vfm::io
