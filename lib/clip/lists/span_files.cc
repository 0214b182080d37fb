// Reads the formats of spans: JSON Lines, CSV, edit lists.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <initializer_list>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "clip/lists/spans.h"
#include "io/file.h"
#include "io/line_reader.h"
#include "io/places.h"
#include "io/streams.h"
#include "io/zstd_reader.h"

namespace vfm::clip {
namespace {

using Names = std::initializer_list<const char*>;
constexpr Names kSources = {"source", "path", "video", "file", "filename"};
constexpr Names kBegins = {"begin", "start", "start_time"};
constexpr Names kEnds = {"end", "end_time"};

std::string trimmed(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!text.empty() && blank(text.front()))
    text.remove_prefix(1);
  while (!text.empty() && blank(text.back()))
    text.remove_suffix(1);
  return std::string(text);
}

std::string lower(std::string text) {
  for (char& c : text)
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

std::string no_order(const SpanTime& begin, const SpanTime& end) {
  if (begin.unit != end.unit || begin.place(0, {25, 1}) < end.place(0, {25, 1})) return {};
  return "the span ends before it begins";
}

/// Returns the name of the video that a file of spans is named after: "film" for "film-Scenes.csv".
std::string video_of(const std::string& path) {
  std::string name = io::base_name(path);
  if (io::is_zstd_name(name)) name.resize(name.size() - io::kZstdEnd.size());
  if (const std::size_t dot = name.rfind('.'); dot != std::string::npos && dot > 0)
    name.resize(dot);
  if (name.ends_with("-Scenes")) name.resize(name.size() - 7);
  return name;
}

class SpanFile {
 public:
  SpanFile(const std::string& path, GivenSpans& spans, const io::OnFault& on_bad)
      : path_(path),
        lines_(io::File::open_read(path), "'" + path + "'"),
        spans_(spans),
        on_bad_(on_bad) {}

  void read();

 private:
  using Reader = void (SpanFile::*)(const std::string&);
  void json_line(const std::string& line);
  void shots(const Json& record);
  void csv_line(const std::string& line);
  bool csv_header(const std::vector<std::string>& cells);
  SpanTime csv_time(const std::vector<std::string>& cells, bool begin) const;
  void edl_line(const std::string& line);
  void end_event();
  void add(std::string source, GivenSpan&& span);

  std::string path_;
  io::LineReader lines_;
  GivenSpans& spans_;
  const io::OnFault& on_bad_;

  std::vector<std::string> header_;  // of a CSV, in lower case
  int source_ = -1, begin_ = -1, end_ = -1;
  bool scenes_ = false, frames_ = false;  // PySceneDetect's columns; they count frames from 1

  std::optional<GivenSpan> event_;  // of an EDL
  std::string event_source_;
  bool event_has_path_ = false, drop_ = false;
  io::InputStreams streams_;
};

void SpanFile::add(std::string source, GivenSpan&& span) {
  if (const std::string folder = streams_.folder(); !folder.empty() && !source.empty())
    source = io::named_from(folder, source);
  if (const std::string wrong = no_order(span.begin, span.end); !wrong.empty()) fail("{}", wrong);
  if (span.where.empty()) span.where = lines_.where();
  spans_.add(source.empty() ? video_of(path_) : source, source.empty(), std::move(span));
}

void SpanFile::read() {
  Reader reader = nullptr;
  bool first = true;
  while (auto line = lines_.next()) {
    if (first && line->starts_with("\xEF\xBB\xBF")) line->erase(0, 3);
    first = false;
    const std::string text = trimmed(*line);
    if (text.empty()) continue;
    if (!reader)
      reader = text.front() == '{'                 ? &SpanFile::json_line
               : lower(text).starts_with("title:") ? &SpanFile::edl_line
                                                   : &SpanFile::csv_line;
    try {
      (this->*reader)(text);
    } catch (const Error& error) {
      on_bad_({lines_.where(), error, Cause::line});
    }
  }
  try {
    end_event();
  } catch (const Error& error) {
    on_bad_({lines_.where(), error, Cause::line});
  }
  if (const std::string why = streams_.broken_off(); !why.empty())
    on_bad_({path_, fmt::format("{}: spans may be missing", why), Cause::missing});
}

const Json* find_any(const Json& record, Names names) {
  for (const char* name : names)
    if (const auto found = record.find(name); found != record.end()) return &*found;
  return nullptr;
}

SpanTime json_time(const Json* value, const Json& record, const char* frame_name, bool begin) {
  if (value && value->is_string()) return parse_span_time(value->get<std::string>());
  SpanTime time;
  if (value && value->is_number()) {
    time.seconds = value->get<double>();
    return time;
  }
  if (const auto frame = get_integer(record, frame_name)) {
    time.unit = SpanTime::Unit::frame;
    time.frames = *frame;
    return time;
  }
  if (value && !value->is_null()) fail("a time is neither a number nor text");
  if (begin) fail("the span has no 'begin'");
  if (!value) fail("the span has no 'end'; null is the end of the video");
  time.unit = SpanTime::Unit::open;
  return time;
}

void SpanFile::json_line(const std::string& line) {
  if (streams_.take(line, lines_.name())) return;
  const Json record = parse_json(line, lines_.where());
  if (!record.is_object()) fail("not a JSON object");
  const std::string kind = get_string(record, "kind").value_or("");
  if (kind == "shots") return shots(record);
  const Json* source = find_any(record, kSources);
  const Json *begin = find_any(record, kBegins), *end = find_any(record, kEnds);
  if (!kind.empty() && !begin && !record.contains("begin_frame")) return;
  if (source && !source->is_string()) fail("the source is not text");
  GivenSpan span;
  span.begin = json_time(begin, record, "begin_frame", true);
  span.end = json_time(end, record, "end_frame", false);
  const auto known = [](const std::string& name) {
    for (const Names names : {kSources, kBegins, kEnds, Names{"kind", "begin_frame", "end_frame"}})
      if (std::find(names.begin(), names.end(), name) != names.end()) return true;
    return false;
  };
  // Other fields of a clip's json are dropped, because they were measured on another clip.
  const bool clip = record.contains("pts_begin") && record.contains("source_hash");
  for (const auto& [name, value] : record.items())
    if (!clip && !known(name)) span.fields[name] = value;
  add(source ? source->get<std::string>() : "", std::move(span));
}

/// Adds the shots between the changes that `vfm-clip shots` listed.
void SpanFile::shots(const Json& record) {
  const std::string source = need_string(record, "path", lines_.where());
  const auto cuts = record.find("cuts");
  if (cuts == record.end() || !cuts->is_array()) fail("the record has no list 'cuts'");
  GivenSpan span;
  span.begin.unit = SpanTime::Unit::video;
  for (const Json& cut : *cuts) {
    span.end.unit = SpanTime::Unit::container;
    span.end.seconds = need_number(cut, "time", lines_.where());
    GivenSpan next;
    next.begin = span.end;
    add(source, std::move(span));
    span = std::move(next);
  }
  span.end.unit = SpanTime::Unit::open;
  add(source, std::move(span));
}

/// Returns the cells of a line without the blanks around them. Quotes follow RFC 4180.
std::vector<std::string> csv_cells(const std::string& line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quoted && c == '"' && i + 1 < line.size() && line[i + 1] == '"')
      cells.back() += line[++i];
    else if (c == '"')
      quoted = !quoted;
    else if (c == ',' && !quoted)
      cells.emplace_back();
    else
      cells.back() += c;
  }
  if (quoted) fail("a quote is not closed");
  for (std::string& cell : cells)
    cell = trimmed(cell);
  return cells;
}

bool SpanFile::csv_header(const std::vector<std::string>& cells) {
  std::vector<std::string> names;
  for (const std::string& cell : cells)
    names.push_back(lower(cell));
  const auto column = [&](Names wanted) {
    for (const char* name : wanted)
      if (const auto at = std::find(names.begin(), names.end(), name); at != names.end())
        return static_cast<int>(at - names.begin());
    return -1;
  };
  begin_ = column({"start time (seconds)", "start timecode"});
  end_ = column({"end time (seconds)", "end timecode"});
  scenes_ = begin_ >= 0 && end_ >= 0;
  if (!scenes_) begin_ = column(kBegins), end_ = column(kEnds);
  if (begin_ < 0 && end_ < 0) {
    begin_ = column({"start frame", "begin_frame"}), end_ = column({"end frame", "end_frame"});
    frames_ = begin_ >= 0 && end_ >= 0;
    scenes_ = begin_ >= 0 && names[static_cast<std::size_t>(begin_)] == "start frame";
  }
  source_ = column(kSources);
  if (begin_ < 0 || end_ < 0) return false;
  header_ = std::move(names);
  return true;
}

SpanTime SpanFile::csv_time(const std::vector<std::string>& cells, bool begin) const {
  const auto at = static_cast<std::size_t>(begin ? begin_ : end_);
  if (at >= cells.size())
    fail("the line has {} cells, and its time is cell {}", cells.size(), at + 1);
  SpanTime time;
  if (!begin && cells[at].empty()) {
    time.unit = SpanTime::Unit::open;
    return time;
  }
  time = parse_span_time(cells[at]);
  if (frames_) {
    time.unit = SpanTime::Unit::frame;
    time.frames = static_cast<std::int64_t>(time.seconds) - (scenes_ && begin ? 1 : 0);
  } else if (scenes_ && !time.by_frame()) {
    time.unit = SpanTime::Unit::video;
  }
  return time;
}

void SpanFile::csv_line(const std::string& line) {
  std::vector<std::string> cells = csv_cells(line);
  if (header_.empty()) {
    // PySceneDetect puts a line of bare timecodes before its header.
    if (lower(cells[0]) == "timecode list:") return;
    if (csv_header(cells)) return;
    if (cells.size() != 3)
      fail("no header with 'source', 'begin' and 'end', nor three cells in this order");
    header_ = {"source", "begin", "end"};
    source_ = 0, begin_ = 1, end_ = 2;
  }
  GivenSpan span;
  span.begin = csv_time(cells, true);
  span.end = csv_time(cells, false);
  for (std::size_t i = 0; !scenes_ && i < std::min(cells.size(), header_.size()); ++i) {
    const int column = static_cast<int>(i);
    if (column == source_ || column == begin_ || column == end_ || header_[i].empty()) continue;
    double value = 0;
    const std::string& cell = cells[i];
    const auto [stop, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    const bool numeric = error == std::errc{} && stop == cell.data() + cell.size();
    span.fields[header_[i]] = numeric ? Json(value) : Json(cell);
  }
  const auto at = static_cast<std::size_t>(std::max(source_, 0));
  if (source_ >= 0 && (at >= cells.size() || cells[at].empty())) fail("the line names no source");
  add(source_ < 0 ? "" : cells[at], std::move(span));
}

/// Reads a line of an edit decision list. Comments after an event name its file.
void SpanFile::edl_line(const std::string& line) {
  const std::string upper_less = lower(line);
  if (upper_less.starts_with("fcm:")) {
    drop_ = upper_less.find("non") == std::string::npos;
    return;
  }
  if (line.front() == '*') {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) return;
    const std::string what = trimmed(upper_less.substr(1, colon - 1));
    const bool path = what == "source file";
    if (!path && (what != "from clip name" || event_has_path_)) return;
    event_source_ = trimmed(line.substr(colon + 1));
    event_has_path_ = path;
    return;
  }
  if (std::isdigit(static_cast<unsigned char>(line.front())) == 0) return;
  std::vector<std::string> words;
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t blank = std::min(line.find_first_of(" \t", at), line.size());
    if (blank > at) words.push_back(line.substr(at, blank - at));
    at = blank + 1;
  }
  end_event();
  event_source_.clear();
  event_has_path_ = false;
  if (words.size() < 8) fail("an event needs a number, a reel, a channel, a cut and four times");
  if (words[2].find('V') == std::string::npos && words[2] != "B") return;  // only sound
  GivenSpan span;
  span.begin = parse_span_time(words[words.size() - 4]);
  span.end = parse_span_time(words[words.size() - 3]);
  for (SpanTime* time : {&span.begin, &span.end}) {
    if (!time->by_frame()) fail("'{}' has no frames", line);
    time->drop = time->drop || drop_;
  }
  if (const std::string wrong = no_order(span.begin, span.end); !wrong.empty()) fail("{}", wrong);
  span.where = lines_.where();
  event_ = std::move(span);
}

void SpanFile::end_event() {
  if (!event_) return;
  GivenSpan span = *std::exchange(event_, std::nullopt);
  const std::string source = std::exchange(event_source_, {});
  if (std::exchange(event_has_path_, false) || source.empty()) return add(source, std::move(span));
  spans_.add(source, true, std::move(span));
}

}  // namespace

void read_span_file(const std::string& path, GivenSpans& spans, const io::OnFault& on_bad) {
  SpanFile(path, spans, on_bad).read();
}

}  // namespace vfm::clip
