// SPDX-License-Identifier: Apache-2.0
#include "text/template/python_text.h"

#include <unicode/locid.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "text/characters.h"
#include "text/unicode.h"

namespace vfm::text::jinja {
namespace {

/// As str.isspace(): White_Space and four ASCII separators.
bool is_python_space(char32_t c) {
  return is_space(c) || (c >= 0x1c && c <= 0x1f);
}

/// As str.isprintable().
bool is_printable(char32_t c) {
  switch (u_charType(static_cast<UChar32>(c))) {
    case U_CONTROL_CHAR:
    case U_FORMAT_CHAR:
    case U_SURROGATE:
    case U_PRIVATE_USE_CHAR:
    case U_UNASSIGNED:
    case U_LINE_SEPARATOR:
    case U_PARAGRAPH_SEPARATOR:
      return false;
    case U_SPACE_SEPARATOR:
      return c == ' ';
    default:
      return true;
  }
}

void append_escape(std::string& out, char32_t c) {
  const auto code = static_cast<std::uint32_t>(c);
  if (code < 0x100)
    out += fmt::format("\\x{:02x}", code);
  else if (code < 0x10000)
    out += fmt::format("\\u{:04x}", code);
  else
    out += fmt::format("\\U{:08x}", code);
}

void append_string_repr(std::string& out, std::string_view text) {
  const bool single = text.find('\'') == text.npos || text.find('"') != text.npos;
  const char quote = single ? '\'' : '"';
  out += quote;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    const char32_t c = next_code_point(text, at);
    if (c == U'\\' || c == static_cast<char32_t>(quote))
      out += '\\', out += static_cast<char>(c);
    else if (c == U'\n')
      out += "\\n";
    else if (c == U'\r')
      out += "\\r";
    else if (c == U'\t')
      out += "\\t";
    else if (is_printable(c))
      out += text.substr(begin, at - begin);
    else
      append_escape(out, c);
  }
  out += quote;
}

std::string from_icu(const icu::UnicodeString& text) {
  std::string out;
  text.toUTF8String(out);
  return out;
}

void append_title(std::string& out, std::string_view character) {
  icu::UnicodeString one = icu::UnicodeString::fromUTF8(
      icu::StringPiece(character.data(), static_cast<std::int32_t>(character.size())));
  const UChar32 c = one.char32At(0);
  // u_totitle() does not change characters with a longer title case, such as "ß" and "ŉ".
  if (u_totitle(c) != c)
    append_code_point(out, static_cast<char32_t>(u_totitle(c)));
  else
    out += from_icu(one.toTitle(nullptr, icu::Locale::getRoot(), U_TITLECASE_NO_LOWERCASE));
}

}  // namespace

std::string real_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char digits[64];
  const auto end = std::to_chars(digits, digits + 64, value, std::chars_format::scientific).ptr;
  const std::string scientific(digits, end);
  const int exponent = std::stoi(scientific.substr(scientific.find('e') + 1));
  if (exponent < -4 || exponent >= 16) return scientific;
  const auto plain = std::to_chars(digits, digits + 64, value, std::chars_format::fixed).ptr;
  std::string text(digits, plain);
  if (text.find('.') == text.npos) text += ".0";
  return text;
}

void append_repr(std::string& out, const Value& value) {
  if (value.string()) {
    append_string_repr(out, *value.string());
  } else if (value.list()) {
    out += value.is_tuple() ? '(' : '[';
    for (std::size_t i = 0; i < value.list()->size(); ++i) {
      if (i > 0) out += ", ";
      append_repr(out, (*value.list())[i]);
    }
    if (value.is_tuple() && value.list()->size() == 1) out += ',';
    out += value.is_tuple() ? ')' : ']';
  } else if (value.mapping()) {
    out += '{';
    bool first = true;
    for (const auto& [key, item] : *value.mapping()) {
      if (!first) out += ", ";
      first = false;
      append_string_repr(out, key);
      out += ": ";
      append_repr(out, item);
    }
    out += '}';
  } else if (value.is_none()) {
    out += "None";
  } else if (value.is_bool()) {
    out += value.truth() ? "True" : "False";
  } else if (value.is_integer()) {
    out += std::to_string(value.integer());
  } else if (value.is_real()) {
    out += real_text(value.real());
  } else if (value.is_undefined()) {
    out += "Undefined";
  }
}

std::string strip(std::string_view text, const std::string* characters, bool left, bool right) {
  return std::string(stripped(text, characters, left, right));
}

std::string_view stripped(std::string_view text, const std::string* characters, bool left,
                          bool right) {
  std::u32string of;
  for (std::size_t at = 0; characters && at < characters->size();)
    of += next_code_point(*characters, at);
  std::sort(of.begin(), of.end());
  const auto goes = [&](char32_t c) {
    return characters ? std::binary_search(of.begin(), of.end(), c) : is_python_space(c);
  };
  while (left && !text.empty()) {
    std::size_t at = 0;
    if (!goes(next_code_point(text, at))) break;
    text.remove_prefix(at);
  }
  while (right && !text.empty()) {
    const std::size_t begin = previous_boundary(text, text.size());
    std::size_t at = begin;
    if (!goes(next_code_point(text, at))) break;
    text = text.substr(0, begin);
  }
  return text;
}

std::string upper_case(std::string_view text) {
  icu::UnicodeString all = icu::UnicodeString::fromUTF8(
      icu::StringPiece(text.data(), static_cast<std::int32_t>(text.size())));
  return from_icu(all.toUpper(icu::Locale::getRoot()));
}

std::string capitalized(std::string_view text) {
  if (text.empty()) return {};
  std::size_t at = 0;
  next_code_point(text, at);
  std::string out;
  append_title(out, text.substr(0, at));
  return out + lower_case(text.substr(at));
}

std::string title_case(std::string_view text) {
  std::string out;
  bool in_word = false;
  for (const std::string_view character : code_points(text)) {
    std::size_t at = 0;
    const char32_t c = next_code_point(character, at);
    if (in_word)
      append_lower_case(out, c);
    else
      append_title(out, character);
    in_word = u_isUAlphabetic(static_cast<UChar32>(c)) &&
              (u_tolower(static_cast<UChar32>(c)) != static_cast<UChar32>(c) ||
               u_toupper(static_cast<UChar32>(c)) != static_cast<UChar32>(c));
  }
  return out;
}

std::vector<std::string_view> code_points(std::string_view text) {
  std::vector<std::string_view> all;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    next_code_point(text, at);
    all.push_back(text.substr(begin, at - begin));
  }
  return all;
}

namespace {

/// Splits at white space from the left, at most `most` times.
std::vector<std::string> split_words(std::string_view text, std::int64_t most) {
  std::vector<std::string> parts;
  for (;;) {
    text = stripped(text, nullptr, true, false);
    if (text.empty()) return parts;
    if (most >= 0 && static_cast<std::int64_t>(parts.size()) >= most) {
      parts.emplace_back(text);
      return parts;
    }
    std::size_t at = 0, end = 0;
    while (at < text.size() && !is_python_space(next_code_point(text, at)))
      end = at;
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
  }
}

std::vector<std::string> split_words_from_right(std::string_view text, std::int64_t most) {
  std::vector<std::string> parts;
  for (;;) {
    text = stripped(text, nullptr, false, true);
    if (text.empty()) break;
    if (most >= 0 && static_cast<std::int64_t>(parts.size()) >= most) {
      parts.emplace_back(text);
      break;
    }
    std::size_t begin = text.size();
    while (begin > 0) {
      std::size_t at = previous_boundary(text, begin);
      const std::size_t before = at;
      if (is_python_space(next_code_point(text, at))) break;
      begin = before;
    }
    parts.emplace_back(text.substr(begin));
    text = text.substr(0, begin);
  }
  std::reverse(parts.begin(), parts.end());
  return parts;
}

}  // namespace

std::vector<std::string> split(std::string_view text, const std::string* separator,
                               std::int64_t most, bool from_right) {
  if (!separator) return from_right ? split_words_from_right(text, most) : split_words(text, most);
  std::vector<std::string> parts;
  while (most < 0 || static_cast<std::int64_t>(parts.size()) < most) {
    const std::size_t at = from_right ? text.rfind(*separator) : text.find(*separator);
    if (at == text.npos) break;
    const std::size_t behind = at + separator->size();
    parts.emplace_back(from_right ? text.substr(behind) : text.substr(0, at));
    text = from_right ? text.substr(0, at) : text.substr(behind);
  }
  parts.emplace_back(text);
  if (from_right) std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<std::string> split_lines(std::string_view text) {
  std::vector<std::string> lines;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t before = at;
    const char32_t c = next_code_point(text, at);
    const bool ends = (c >= 0x0a && c <= 0x0d) || (c >= 0x1c && c <= 0x1e) || c == 0x85 ||
                      c == 0x2028 || c == 0x2029;
    if (!ends) continue;
    lines.emplace_back(text.substr(begin, before - begin));
    if (c == U'\r' && at < text.size() && text[at] == '\n') ++at;
    begin = at;
  }
  if (begin < text.size()) lines.emplace_back(text.substr(begin));
  return lines;
}

std::string replaced(std::string_view text, std::string_view old, std::string_view by,
                     std::int64_t most, Run& run) {
  std::string out;
  const auto grow = [&](std::string_view part) {
    if (out.size() + part.size() > kLargest) run.refuse("'replace' makes more than 16 MiB");
    out += part;
  };
  std::int64_t done = 0;
  if (old.empty()) {
    for (const std::string_view character : code_points(text)) {
      if (most < 0 || done++ < most) grow(by);
      grow(character);
    }
    if (most < 0 || done < most) grow(by);
  } else {
    for (;;) {
      const std::size_t at = most >= 0 && done++ >= most ? text.npos : text.find(old);
      if (at == text.npos) break;
      grow(text.substr(0, at));
      grow(by);
      text.remove_prefix(at + old.size());
    }
    grow(text);
  }
  run.charge_bytes(out.size());
  return out;
}

}  // namespace vfm::text::jinja
