// SPDX-License-Identifier: Apache-2.0
#include "text/template/arithmetic.h"

#include <cmath>
#include <limits>
#include <optional>

namespace vfm::text::jinja {
namespace {

/// Returns a // b, rounded down.
std::int64_t floor_quotient(std::int64_t a, std::int64_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

/// Returns nothing if the result does not fit.
std::optional<std::int64_t> whole_power(std::int64_t base, std::int64_t exponent) {
  std::int64_t result = 1;
  for (std::int64_t i = 0; i < exponent; ++i) {
    if (__builtin_mul_overflow(result, base, &result)) return std::nullopt;
    if (result == 0 || (base == 1)) break;
    if (base == -1) return exponent % 2 == 0 ? 1 : -1;
  }
  return result;
}

Value of_whole(std::string_view sign, std::int64_t a, std::int64_t b, Run& run) {
  std::int64_t result = 0;
  bool over = false;
  if (sign == "+") {
    over = __builtin_add_overflow(a, b, &result);
  } else if (sign == "-") {
    over = __builtin_sub_overflow(a, b, &result);
  } else if (sign == "*") {
    over = __builtin_mul_overflow(a, b, &result);
  } else if (sign == "**") {
    const auto power = whole_power(a, b);
    over = !power;
    result = power.value_or(0);
  } else {
    over = a == std::numeric_limits<std::int64_t>::min() && b == -1;
    if (!over) result = sign == "//" ? floor_quotient(a, b) : a - floor_quotient(a, b) * b;
  }
  if (over) run.refuse("{} {} {} is too large", a, sign, b);
  return Value::of(result);
}

Value of_real(std::string_view sign, double a, double b, Run& run) {
  if (sign == "+") return Value::of(a + b);
  if (sign == "-") return Value::of(a - b);
  if (sign == "*") return Value::of(a * b);
  if (sign == "/") return Value::of(a / b);
  if (sign == "//") return Value::of(std::floor(a / b));
  if (sign == "%") {
    const double rest = std::fmod(a, b);
    return Value::of(rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest);
  }
  const double power = std::pow(a, b);
  if (!std::isfinite(power)) run.refuse("{} ** {} is no number", a, b);
  return Value::of(power);
}

Value repeated(const Value& of, std::int64_t times, Run& run) {
  if (times < 0) times = 0;
  const auto count = static_cast<std::size_t>(times);
  const std::size_t size = of.string() ? of.string()->size() : of.list()->size();
  if (size > 0 && count > kLargest / size) run.refuse("a value is larger than 16 MiB");
  if (of.string()) {
    run.charge_bytes(size * count);
    std::string text;
    for (std::size_t i = 0; size > 0 && i < count; ++i)
      text += *of.string();
    return Value::of(std::move(text));
  }
  run.charge(size * count + 1);
  List items;
  for (std::size_t i = 0; size > 0 && i < count; ++i)
    items.insert(items.end(), of.list()->begin(), of.list()->end());
  return Value::of(std::move(items), run, of.is_tuple());
}

}  // namespace

Value compute(std::string_view sign, const Value& a, const Value& b, Run& run) {
  if (a.is_number() && b.is_number()) {
    const bool divides = sign == "/" || sign == "//" || sign == "%";
    if (divides && b.real() == 0) run.refuse("{} by 0", sign);
    const bool real =
        a.is_real() || b.is_real() || sign == "/" || (sign == "**" && b.integer() < 0);
    return real ? of_real(sign, a.real(), b.real(), run)
                : of_whole(sign, a.integer(), b.integer(), run);
  }
  if (sign == "+" && a.string() && b.string()) {
    const std::size_t size = a.string()->size() + b.string()->size();
    if (size > kLargest) run.refuse("a value is larger than 16 MiB");
    run.charge_bytes(size);
    return Value::of(*a.string() + *b.string());
  }
  if (sign == "+" && a.list() && b.list() && a.is_tuple() == b.is_tuple()) {
    run.charge(a.list()->size() + b.list()->size());
    List items = *a.list();
    items.insert(items.end(), b.list()->begin(), b.list()->end());
    return Value::of(std::move(items), run, a.is_tuple());
  }
  if (sign == "*") {
    const auto whole = [](const Value& value) { return value.is_integer() || value.is_bool(); };
    if ((a.string() || a.list()) && whole(b)) return repeated(a, b.integer(), run);
    if ((b.string() || b.list()) && whole(a)) return repeated(b, a.integer(), run);
  }
  if (sign == "%" && a.string()) run.refuse("'%' after a string is not supported");
  run.refuse("'{}' of {} and {}", sign, a.kind(), b.kind());
}

Value compute(std::string_view sign, const Value& a, Run& run) {
  if (!a.is_number()) run.refuse("'{}' of {}", sign, a.kind());
  if (a.is_real()) return Value::of(sign == "-" ? -a.real() : a.real());
  if (sign == "-") return compute("-", Value::of(std::int64_t{0}), a, run);
  return Value::of(a.integer());
}

}  // namespace vfm::text::jinja
