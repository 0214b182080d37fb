// SPDX-License-Identifier: Apache-2.0
#include "text/captions.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/json.h"
#include "text/unicode.h"

namespace vfm::text {
namespace {

constexpr double kForever = std::numeric_limits<double>::infinity();

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t'))
    text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t'))
    text.remove_suffix(1);
  return text;
}

std::optional<long> take_number(std::string_view& text, std::size_t* digits = nullptr) {
  std::size_t n = 0;
  long value = 0;
  while (n < text.size() && n < 9 && is_digit(text[n]))
    value = value * 10 + (text[n++] - '0');
  if (n == 0 || (n < text.size() && is_digit(text[n]))) return std::nullopt;
  text.remove_prefix(n);
  if (digits != nullptr) *digits = n;
  return value;
}

bool take(std::string_view& text, char c) {
  if (text.empty() || text.front() != c) return false;
  text.remove_prefix(1);
  return true;
}

/// Takes a time such as "01:02:03,450" or "02:03.45" off the front, in seconds.
std::optional<double> take_time(std::string_view& text) {
  text = trim(text);
  double seconds = 0;
  int fields = 0;
  for (;; ++fields) {
    const auto number = take_number(text);
    if (!number || fields == 3) return std::nullopt;
    seconds = seconds * 60 + static_cast<double>(*number);
    if (!take(text, ':')) break;
  }
  if (fields == 0) return std::nullopt;
  if (take(text, ',') || take(text, '.')) {
    std::size_t digits = 0;
    const auto fraction = take_number(text, &digits);
    if (!fraction) return std::nullopt;
    seconds += static_cast<double>(*fraction) * std::pow(10.0, -static_cast<double>(digits));
  }
  return seconds;
}

/// Reads "TIME --> TIME settings". Returns false if the times cannot be read or run backwards.
bool parse_times(std::string_view line, Cue& cue) {
  const auto begin = take_time(line);
  line = trim(line);
  if (!begin || !line.starts_with("-->")) return false;
  line.remove_prefix(3);
  const auto end = take_time(line);
  if (!end || *end < *begin) return false;
  cue.begin = *begin;
  cue.end = *end;
  return true;
}

bool is_tag_start(std::string_view rest) {
  return rest.size() > 1 && (rest[1] == '/' || std::isalpha(static_cast<unsigned char>(rest[1])));
}

/// Removes tags such as <b>, </font> and {\an8}. A single '<' or '{' is text.
std::string strip_markup(std::string_view text) {
  std::string out;
  // False after the closing character was not found, so that the text is not searched again.
  bool tags_end = true, overrides_end = true;
  while (!text.empty()) {
    const bool tag = tags_end && text.front() == '<' && is_tag_start(text);
    const bool override_tag = overrides_end && text.starts_with("{\\");
    const std::size_t close = tag            ? text.find('>')
                              : override_tag ? text.find('}')
                                             : std::string_view::npos;
    if (close != std::string_view::npos) {
      text.remove_prefix(close + 1);
    } else {
      if (tag) tags_end = false;
      if (override_tag) overrides_end = false;
      out += text.front();
      text.remove_prefix(1);
    }
  }
  return out;
}

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = text.find_first_of("\r\n");
    lines.push_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(text.substr(end).starts_with("\r\n") ? end + 2 : end + 1);
  }
  return lines;
}

bool is_number(std::string_view line) {
  line = trim(line);
  return !line.empty() && std::all_of(line.begin(), line.end(), is_digit);
}

bool has_arrow(std::string_view line) {
  line = trim(line);
  return !line.empty() && is_digit(line.front()) && line.find("-->") != std::string_view::npos;
}

std::string first_text(const Json& list, std::string_view what) {
  std::string first;
  for (const Json& entry : list) {
    if (!entry.is_string()) fail("{} is a list of texts and of other things", what);
    if (first.empty()) first = clean_line(entry.get<std::string>());
  }
  return first;
}

}  // namespace

SubRip parse_srt(std::string_view utf8) {
  SubRip out;
  const auto lines = split_lines(utf8);
  Cue cue;
  std::string text;
  bool inside = false;
  const auto close = [&] {
    if (inside) {
      cue.caption = clean_line(strip_markup(text));
      out.cues.push_back(cue);
    }
    inside = false;
    text.clear();
  };
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (has_arrow(lines[i])) {
      close();
      inside = parse_times(lines[i], cue);
      if (!inside) ++out.malformed;
    } else if (is_number(lines[i]) && i + 1 < lines.size() && has_arrow(lines[i + 1])) {
      // The number of the next cue. The times on the next line close this cue.
    } else if (inside) {
      // Players take a blank line inside a cue as text. Cleaning turns it into a space.
      text += lines[i];
      text += '\n';
    }
  }
  close();
  std::stable_sort(out.cues.begin(), out.cues.end(), [](const Cue& a, const Cue& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  return out;
}

std::vector<Cue> captions_of_json(const Json& value, std::string_view what) {
  if (value.is_string()) return {{0, kForever, clean_line(value.get<std::string>())}};
  const Json* list = &value;
  if (value.is_object()) {
    if (const auto all = value.find("captions"); all != value.end()) {
      list = &*all;
    } else {
      return {{0, kForever, clean_line(need_string(value, "caption", what))}};
    }
  }
  if (!list->is_array()) fail("{} is neither a caption nor a list of captions", what);
  if (!list->empty() && list->front().is_string()) return {{0, kForever, first_text(*list, what)}};
  std::vector<Cue> cues;
  for (const Json& entry : *list) {
    const std::string where = fmt::format("caption {} of {}", cues.size() + 1, what);
    if (!entry.is_object()) fail("{} is not an object", where);
    Cue cue;
    cue.begin = get_number(entry, "start").value_or(0);
    cue.end = get_number(entry, "end").value_or(kForever);
    if (cue.end < cue.begin) fail("{} ends before it starts", where);
    cue.caption = clean_line(need_string(entry, "caption", where));
    cues.push_back(std::move(cue));
  }
  std::stable_sort(cues.begin(), cues.end(),
                   [](const Cue& a, const Cue& b) { return a.begin < b.begin; });
  return cues;
}

std::optional<std::string> caption_of_span(const std::vector<Cue>& cues, double begin, double end) {
  std::optional<std::string> out;
  for (const Cue& cue : cues) {
    const double common = std::min(end, cue.end) - std::max(begin, cue.begin);
    const double shorter = std::min(end - begin, cue.end - cue.begin);
    const bool point = shorter <= 0 && cue.begin < end && begin <= cue.begin;
    if (!point && !(common > 0 && common * 2 >= shorter)) continue;
    if (!out) out.emplace();
    if (!out->empty() && !cue.caption.empty()) *out += ' ';
    *out += cue.caption;
  }
  return out;
}

}  // namespace vfm::text
