// SPDX-License-Identifier: Apache-2.0
#include "base/format_plain.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace vfm::plain {
namespace {

std::string digits(const char* begin, const char* end, const PlainField& field) {
  std::string text(begin, end);
  const auto width = static_cast<std::size_t>(field.width);
  if (text.size() < width && field.zeros) {
    text.insert(text.starts_with('-') ? 1 : 0, width - text.size(), '0');
  } else if (text.size() < width) {
    text.insert(0, width - text.size(), ' ');
  }
  return text;
}

template <class T>
std::string whole(T value, const PlainField& field) {
  std::array<char, 72> room;
  const auto written =
      std::to_chars(room.data(), room.data() + room.size(), value, field.type == 'x' ? 16 : 10);
  return digits(room.data(), written.ptr, field);
}

// Returns the shortest digits that give `value` again: in fixed notation for exponents from -4 to
// 15, else as d.ddde+XX.
template <class T>
std::string shortest(T value) {
  std::array<char, 64> room;
  const auto written =
      std::to_chars(room.data(), room.data() + room.size(), value, std::chars_format::scientific);
  const std::string_view text(room.data(), static_cast<std::size_t>(written.ptr - room.data()));
  const std::size_t e = text.find('e');
  int exponent = 0;
  std::from_chars(text.data() + e + (text[e + 1] == '+' ? 2 : 1), text.data() + text.size(),
                  exponent);
  if (exponent < -4 || exponent >= 16) return std::string(text);
  std::string sign = text.starts_with('-') ? "-" : "", figures;
  std::ranges::copy_if(text.substr(0, e), std::back_inserter(figures),
                       [](char c) { return c >= '0' && c <= '9'; });
  if (exponent < 0)
    return sign + "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + figures;
  const auto before = static_cast<std::size_t>(exponent) + 1;
  if (figures.size() <= before) return sign + figures + std::string(before - figures.size(), '0');
  return sign + figures.substr(0, before) + "." + figures.substr(before);
}

template <class T>
std::string real(T value, const PlainField& field) {
  if (std::isnan(value)) return std::signbit(value) ? "-nan" : "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  if (field.precision < 0) return shortest(value);
  std::string room(400 + static_cast<std::size_t>(field.precision), '\0');  // 1e308 has 309 digits.
  const auto form = field.type == 'f' ? std::chars_format::fixed : std::chars_format::general;
  const auto written =
      std::to_chars(room.data(), room.data() + room.size(), value, form, field.precision);
  room.resize(static_cast<std::size_t>(written.ptr - room.data()));
  return room;
}

struct Writer {
  PlainField field;
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(char value) const { return std::string(1, value); }
  std::string operator()(long long value) const { return whole(value, field); }
  std::string operator()(unsigned long long value) const { return whole(value, field); }
  std::string operator()(float value) const { return real(value, field); }
  std::string operator()(double value) const { return real(value, field); }
  std::string operator()(std::string_view value) const { return std::string(value); }
};

}  // namespace

std::string format_arguments(std::string_view pattern, std::span<const Argument> arguments) {
  std::string text;
  const Argument* argument = arguments.data();
  while (!pattern.empty()) {
    const char c = pattern.front();
    pattern.remove_prefix(1);
    if (c != '{' && c != '}') {
      text += c;
    } else if (!pattern.empty() && pattern.front() == c) {
      pattern.remove_prefix(1);
      text += c;
    } else {
      const PlainField field = parse_field(pattern);
      text += std::visit(Writer{field}, *argument++);
    }
  }
  return text;
}

}  // namespace vfm::plain
