// Replaces {fmt} in builds without that library (base/format.h). Supports the patterns that the
// compute core uses.
//
//   {}                       anything: integers, floats (shortest text with this value), bool,
//                            char, and what converts to std::string_view
//   {:4} {:04} {:x} {:016x}  integers: width, leading zeros, base 16
//   {:.2f} {:.3g}            floats: digits after the point, significant digits
//   {{ }}                    braces
// Other patterns, and a wrong number of values, do not compile. Thread-safety: free functions from
// any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

namespace vfm::plain {

using Argument =
    std::variant<bool, char, long long, unsigned long long, float, double, std::string_view>;

enum class PlainKind { integer, real, other };

template <class T>
constexpr PlainKind kind_of() {
  using U = std::remove_cvref_t<T>;
  static_assert(std::is_arithmetic_v<U> || std::is_convertible_v<const U&, std::string_view>,
                "write it as a number or as text");
  if constexpr (std::is_same_v<U, bool> || std::is_same_v<U, char>) return PlainKind::other;
  if constexpr (std::is_integral_v<U>) return PlainKind::integer;
  if constexpr (std::is_floating_point_v<U>) return PlainKind::real;
  return PlainKind::other;
}

template <class T>
Argument argument(const T& value) {
  if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, char> || std::is_same_v<T, float>) {
    return value;
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<double>(value);
  } else if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
    return static_cast<long long>(value);
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<unsigned long long>(value);
  } else {
    return std::string_view(value);
  }
}

/// The content of one pair of braces in a pattern.
struct PlainField {
  bool zeros = false;
  int width = 0, precision = -1;
  char type = 0;  ///< 'd', 'x', 'f' or 'g', or 0 without a type.
};

/// Reads the field after a '{', and removes the field and its '}' from `rest`. Throws for any other
/// text, so that the pattern does not compile.
constexpr PlainField parse_field(std::string_view& rest) {
  PlainField field;
  const auto next = [&]() -> char { return rest.empty() ? '\0' : rest.front(); };
  const auto number = [&] {
    int value = 0;
    for (; next() >= '0' && next() <= '9'; rest.remove_prefix(1))
      value = 10 * value + (next() - '0');
    return value;
  };
  if (next() == ':') {
    rest.remove_prefix(1);
    if (next() == '0') field.zeros = true;
    field.width = number();
    if (next() == '.') {
      rest.remove_prefix(1);
      field.precision = number();
    }
    if (next() != '}') {
      field.type = next();
      if (!rest.empty()) rest.remove_prefix(1);
    }
  }
  if (next() != '}') throw "a field of the pattern is not one of those above";
  rest.remove_prefix(1);
  return field;
}

/// Throws if `pattern` does not fit values of `kinds`, so that the call does not compile.
constexpr void check(std::string_view pattern, std::initializer_list<PlainKind> kinds) {
  const PlainKind* kind = kinds.begin();
  while (!pattern.empty()) {
    const char c = pattern.front();
    pattern.remove_prefix(1);
    if (c != '{' && c != '}') continue;
    if (!pattern.empty() && pattern.front() == c) {
      pattern.remove_prefix(1);
      continue;
    }
    if (c == '}') throw "a '}' alone; write '}}'";
    if (kind == kinds.end()) throw "more fields than values";
    const PlainField field = parse_field(pattern);
    const bool real = field.type == 'f' || field.type == 'g' || field.precision >= 0;
    const bool whole = field.type == 'd' || field.type == 'x' || field.width > 0 || field.zeros;
    if (field.type != 0 && !real && !whole) throw "no such type of field";
    if (real && (*kind != PlainKind::real || whole || field.precision < 0 || field.type == 0))
      throw "write a float as {}, {:.2f} or {:.3g}";
    if (whole && *kind != PlainKind::integer) throw "a width is for integers";
    ++kind;
  }
  if (kind != kinds.end()) throw "fewer fields than values";
}

template <class... Args>
struct CheckedPattern {
  template <class T>
  requires std::convertible_to<const T&, std::string_view>
  consteval CheckedPattern(const T& pattern) : text(pattern) { check(text, {kind_of<Args>()...}); }
  std::string_view text;
};

/// A checked pattern for values of the types Args.
template <class... Args>
using FormatString = CheckedPattern<std::type_identity_t<Args>...>;

/// Returns the text that format() below returns. `pattern` must have been checked.
std::string format_arguments(std::string_view pattern, std::span<const Argument> arguments);

template <class... Args>
std::string format(FormatString<Args...> pattern, const Args&... args) {
  const std::array<Argument, sizeof...(Args)> arguments{argument(args)...};
  return format_arguments(pattern.text, arguments);
}

}  // namespace vfm::plain
