// SPDX-License-Identifier: Apache-2.0
#include "clip/lists/spans.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <limits>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "io/file.h"

namespace vfm::clip {
namespace {

/// Returns the same text for all spellings of a path. URLs are not changed.
std::string plain_path(const std::string& path) {
  if (io::is_url(path)) return path;
  std::error_code error;
  const auto absolute = std::filesystem::absolute(path, error);
  return error ? path : absolute.lexically_normal().string();
}

std::string name_stem(const std::string& path) {
  const std::string name = io::base_name(path);
  const std::size_t dot = name.rfind('.');
  return dot == std::string::npos || dot == 0 ? name : name.substr(0, dot);
}

double number(std::string_view text, std::string_view whole) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value))
    fail("cannot read '{}' as a time; write seconds, 00:01:30.25 or 00:01:30:06", whole);
  return value;
}

}  // namespace

SpanTime parse_span_time(std::string_view text) {
  SpanTime time;
  std::string_view rest = text;
  double seconds = 0;
  int parts = 0;
  for (;;) {
    const std::size_t colon = rest.find_first_of(":;");
    const double value = number(rest.substr(0, colon), text);
    if ((parts > 0 || colon != std::string_view::npos) && (value < 0 || std::signbit(value)))
      fail("a part of the time '{}' is negative", text);
    if (parts == 3) {
      if (value != std::floor(value) || value >= 1000) fail("'{}' has no whole frames", text);
      time.unit = SpanTime::Unit::timecode;
      time.frames = static_cast<std::int64_t>(value);
    } else {
      seconds = 60 * seconds + value;
    }
    ++parts;
    if (colon == std::string_view::npos) break;
    if (parts > 3) fail("'{}' has too many parts for a time", text);
    if (rest[colon] == ';') time.drop = true;
    rest.remove_prefix(colon + 1);
  }
  if (time.drop && parts != 4) fail("'{}' is not a drop-frame timecode, as 00:01:30;06 is", text);
  if (std::abs(seconds) > 1e9) fail("'{}' is longer than any video", text);
  time.seconds = seconds;
  return time;
}

double SpanTime::place(double first, Rational frame_rate) const {
  switch (unit) {
    case Unit::container:
      return seconds;
    case Unit::video:
      return first + seconds;
    case Unit::frame:
      return static_cast<double>(frames);
    case Unit::timecode: {
      const double rate = std::max(1.0, std::round(frame_rate.value()));
      double count = seconds * rate + static_cast<double>(frames);
      if (drop) {
        // Drop-frame timecodes skip two numbers (four at 60 frames per second) at each minute,
        // except at each tenth minute.
        const double minutes = std::floor(seconds / 60);
        count -= std::round(rate / 15) * (minutes - std::floor(minutes / 10));
      }
      return count;
    }
    case Unit::open:
      break;
  }
  return std::numeric_limits<double>::infinity();
}

std::string GivenSpan::text() const {
  const auto of = [](const SpanTime& t) {
    return fmt::format("{}:{}:{}:{}", static_cast<int>(t.unit), t.seconds, t.frames, t.drop);
  };
  return fmt::format("{} {} {}\n", of(begin), of(end), dump_json(fields));
}

std::string SpanPiece::text() const {
  const auto of = [&](double place) {
    return std::isinf(place) ? std::string("the end")
           : by_frame        ? fmt::format("frame {:.0f}", place)
                             : fmt::format("{:.3f} s", place);
  };
  return fmt::format("{}: the span from {} to {}", given->where, of(begin), of(end));
}

std::vector<SpanPiece> plan_pieces(const std::vector<GivenSpan>& spans, double first,
                                   Rational frame_rate, std::vector<std::string>& errors) {
  std::vector<SpanPiece> pieces;
  for (const GivenSpan& span : spans) {
    SpanPiece piece{0, 0, span.begin.by_frame() || span.end.by_frame(), &span};
    if (span.begin.by_frame() != span.end.by_frame() && span.end.unit != SpanTime::Unit::open) {
      errors.push_back(fmt::format("{}: one end is a time, the other one a frame", span.where));
      continue;
    }
    piece.begin = span.begin.place(first, frame_rate);
    piece.end = span.end.place(first, frame_rate);
    if (!(piece.begin < piece.end))
      errors.push_back(piece.text() + " is empty");
    else
      pieces.push_back(piece);
  }
  std::stable_sort(pieces.begin(), pieces.end(), [](const SpanPiece& a, const SpanPiece& b) {
    return std::tie(a.by_frame, a.begin, a.end) < std::tie(b.by_frame, b.begin, b.end);
  });
  const auto same = [](const SpanPiece& a, const SpanPiece& b) {
    return a.by_frame == b.by_frame && a.begin == b.begin && a.end == b.end;
  };
  pieces.erase(std::unique(pieces.begin(), pieces.end(), same), pieces.end());
  std::vector<std::pair<bool, double>> ends;  // by_frame and end of each pass
  for (SpanPiece& piece : pieces) {
    const auto fits = [&](const auto& end) {
      return end.first == piece.by_frame && end.second <= piece.begin;
    };
    const auto found = std::find_if(ends.begin(), ends.end(), fits);
    piece.pass = static_cast<int>(found - ends.begin());
    if (found == ends.end())
      ends.emplace_back(piece.by_frame, piece.end);
    else
      found->second = piece.end;
  }
  std::stable_sort(pieces.begin(), pieces.end(),
                   [](const SpanPiece& a, const SpanPiece& b) { return a.pass < b.pass; });
  return pieces;
}

GivenSpans::GivenSpans(const std::vector<std::string>& files, const std::string& only_input,
                       const io::OnFault& on_bad)
    : only_input_(only_input) {
  for (const std::string& file : files)
    as_usage([&] { read_span_file(file, *this, on_bad); });
}

void GivenSpans::add(const std::string& source, bool by_name, GivenSpan&& span) {
  const bool named = !by_name || only_input_.empty();
  const std::string& name = named ? source : only_input_;
  const bool by_path = !by_name || !named;
  const auto [found, fresh] = by_path ? by_path_.emplace(plain_path(name), sources_.size())
                                      : by_name_.emplace(name, sources_.size());
  if (fresh) sources_.push_back({name, {}, {}});
  sources_[found->second].spans.push_back(std::move(span));
}

const std::vector<GivenSpan>* GivenSpans::take(const std::string& path) {
  auto found = by_path_.find(plain_path(path));
  if (found == by_path_.end()) {
    found = by_name_.find(io::base_name(path));
    if (found == by_name_.end()) found = by_name_.find(name_stem(path));
    if (found == by_name_.end()) return nullptr;
    const std::string& earlier = sources_[found->second].taken_by;
    if (!earlier.empty() && plain_path(earlier) != plain_path(path))
      fail("the spans name only '{}', and that may be '{}' or '{}'; give paths in --spans",
           sources_[found->second].name, earlier, path);
  }
  Source& source = sources_[found->second];
  source.taken_by = path;
  return &source.spans;
}

std::vector<std::string> GivenSpans::left() const {
  std::vector<std::string> names;
  for (const Source& source : sources_)
    if (source.taken_by.empty()) names.push_back(source.name);
  return names;
}

}  // namespace vfm::clip
