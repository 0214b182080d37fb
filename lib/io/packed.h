// Packs fields into bytes, for records in temporary files. A put_... function uses as few bytes as
// the value needs. A put_ordered... function writes bytes that sort as the values do, for
// io/sorter.h. A take_... function removes a field from the front of `rest`, and throws Error if
// the bytes are not valid. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "base/error.h"

namespace vfm::io {

[[noreturn]] inline void fail_packed() {
  fail("a temporary file is damaged: it does not hold what was written to it");
}

inline std::string_view take_bytes(std::string_view& rest, std::size_t size) {
  if (size > rest.size()) fail_packed();
  const std::string_view bytes = rest.substr(0, size);
  rest.remove_prefix(size);
  return bytes;
}

/// Writes seven bits in each byte, lowest bits first. Numbers below 128 take 1 byte, and others at
/// most 10 bytes.
inline void put_number(std::string& out, std::uint64_t value) {
  for (; value >= 128; value >>= 7)
    out += static_cast<char>(value | 128);
  out += static_cast<char>(value);
}
inline std::uint64_t take_number(std::string_view& rest) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < rest.size() && i < 10; ++i) {
    const auto byte = static_cast<unsigned char>(rest[i]);
    value |= std::uint64_t{byte & 127u} << (7 * i);
    if (byte >= 128) continue;
    rest.remove_prefix(i + 1);
    return value;
  }
  fail_packed();
}

/// Writes `bytes` bytes, highest first. The bytes sort as the numbers do.
inline void put_ordered(std::string& out, std::uint64_t value, int bytes) {
  for (int i = bytes; i-- > 0;)
    out += static_cast<char>(value >> (8 * i) & 255);
}
inline std::uint64_t take_ordered(std::string_view& rest, int bytes) {
  std::uint64_t value = 0;
  for (const char c : take_bytes(rest, static_cast<std::size_t>(bytes)))
    value = value << 8 | static_cast<unsigned char>(c);
  return value;
}

/// Writes a real number in 8 bytes that sort as the numbers do. -0 becomes 0. NaN is not allowed.
inline void put_ordered_real(std::string& out, double value) {
  value += 0.0;
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  put_ordered(out, bits >> 63 ? ~bits : bits | std::uint64_t{1} << 63, 8);
}

/// Writes a real number exactly. Nonnegative integers below 1e9 take one to five bytes. Other
/// numbers take nine bytes.
inline void put_real(std::string& out, double value) {
  const bool whole =
      value >= 0 && value < 1e9 && value == std::floor(value) && !std::signbit(value);
  if (whole) return put_number(out, 1 + static_cast<std::uint64_t>(value));
  out += '\0';
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}
inline double take_real(std::string_view& rest) {
  if (const std::uint64_t whole = take_number(rest)) return static_cast<double>(whole - 1);
  double value = 0;
  std::memcpy(&value, take_bytes(rest, sizeof value).data(), sizeof value);
  return value;
}

inline void put_text(std::string& out, std::string_view text) {
  put_number(out, text.size());
  out += text;
}
inline std::string_view take_text(std::string_view& rest) {
  return take_bytes(rest, take_number(rest));
}

/// Writes bytes that sort as the texts do, even if bytes of other fields follow. A zero byte within
/// the text is followed by 0xff. Two zero bytes end the text.
inline void put_ordered_text(std::string& out, std::string_view text) {
  for (const char c : text) {
    out += c;
    if (c == '\0') out += '\xff';
  }
  out.append(2, '\0');
}
inline std::string take_ordered_text(std::string_view& rest) {
  std::string text;
  for (;;) {
    const std::size_t zero = rest.find('\0');
    if (zero == std::string_view::npos || zero + 1 == rest.size()) fail_packed();
    text += rest.substr(0, zero);
    const char after = rest[zero + 1];
    rest.remove_prefix(zero + 2);
    if (after == '\0') return text;
    text += '\0';
  }
}

/// Packs a hash of hex digits into half as many bytes. Writes any other text in full. Equal texts
/// have equal bytes.
void put_hash(std::string& out, std::string_view text);
/// take_hash() returns the bytes that put_hash() wrote. hash_text() converts these bytes back to
/// text.
std::string_view take_hash(std::string_view& rest);
std::string hash_text(std::string_view packed);

}  // namespace vfm::io
