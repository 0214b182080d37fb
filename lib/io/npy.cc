// SPDX-License-Identifier: Apache-2.0
#include "io/npy.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <cstring>

#include "base/error.h"
#include "base/half.h"

namespace vfm::io {
namespace {

constexpr std::string_view kMagic("\x93NUMPY", 6);

std::size_t item_size_of(std::string_view dtype) {
  for (const std::string_view known :
       {"<f2", "<f4", "<f8", "|u1", "|i1", "<i2", "<u2", "<i4", "<i8"})
    if (dtype == known) return static_cast<std::size_t>(known.back() - '0');
  return 0;
}

class HeaderText {
 public:
  HeaderText(std::string_view text, std::string_view what) : rest_(text), what_(what) {}

  NpyHeader parse() {
    NpyHeader header;
    bool have_descr = false, have_order = false, have_shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string key = quoted();
      expect(':');
      if (key == "descr") {
        header.dtype = quoted();
        have_descr = true;
      } else if (key == "fortran_order") {
        if (accept_word("True")) fail("{} is in Fortran order; save it in C order", what_);
        if (!accept_word("False")) bad();
        have_order = true;
      } else if (key == "shape") {
        header.shape = shape();
        have_shape = true;
      } else {
        bad();
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    if (!have_descr || !have_order || !have_shape) bad();
    return header;
  }

 private:
  [[noreturn]] void bad() { fail("{} has a malformed npy header", what_); }
  void skip() {
    while (!rest_.empty() && (rest_.front() == ' ' || rest_.front() == '\n'))
      rest_.remove_prefix(1);
  }
  bool accept(char c) {
    skip();
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool accept_word(std::string_view word) {
    skip();
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  void expect(char c) {
    if (!accept(c)) bad();
  }
  std::string quoted() {
    skip();
    if (rest_.empty() || (rest_.front() != '\'' && rest_.front() != '"')) bad();
    const std::size_t end = rest_.find(rest_.front(), 1);
    if (end == std::string_view::npos) bad();
    std::string text(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    return text;
  }
  std::vector<std::int64_t> shape() {
    std::vector<std::int64_t> dims;
    expect('(');
    while (!accept(')')) {
      skip();
      std::int64_t dim = 0;
      const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), dim);
      if (error != std::errc{} || dim < 0 || dims.size() >= 32) bad();
      rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
      dims.push_back(dim);
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return dims;
  }

  std::string_view rest_, what_;
};

}  // namespace

std::int64_t NpyHeader::elements() const {
  std::int64_t count = 1;
  for (const std::int64_t dim : shape)
    count *= dim;
  return count;
}

std::size_t NpyHeader::item_size() const {
  return item_size_of(dtype);
}

NpyHeader parse_npy(std::string_view bytes, std::string_view what) {
  if (bytes.size() < 10 || bytes.substr(0, 6) != kMagic) fail("{} is not an npy file", what);
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const int major = byte(6);
  if (major < 1 || major > 3) fail("{} has npy version {}, known are 1 to 3", what, major);
  std::size_t length = byte(8) | byte(9) << 8, begin = 10;
  if (major > 1) {
    if (bytes.size() < 12) fail("{} is truncated", what);
    length |= std::size_t{byte(10)} << 16 | std::size_t{byte(11)} << 24;
    begin = 12;
  }
  if (length > bytes.size() - begin) fail("{} is truncated", what);
  NpyHeader header = HeaderText(bytes.substr(begin, length), what).parse();
  header.data_offset = begin + length;
  const std::size_t item = header.item_size();
  if (item == 0) fail("{} has dtype '{}', which is not supported", what, header.dtype);
  const std::size_t have = bytes.size() - header.data_offset;
  std::size_t want = item;
  for (const std::int64_t dim : header.shape)
    if (__builtin_mul_overflow(want, static_cast<std::size_t>(dim), &want))
      fail("{} has a shape too large for any file", what);
  if (want != have) fail("{} holds {} bytes of data, its shape needs {}", what, have, want);
  return header;
}

std::string make_npy(std::string_view dtype, const std::vector<std::int64_t>& shape,
                     const void* data, std::size_t bytes) {
  std::string dims;
  for (const std::int64_t dim : shape)
    dims += fmt::format("{}, ", dim);
  if (shape.size() > 1) dims.resize(dims.size() - 2);
  if (shape.size() == 1) dims.resize(dims.size() - 1);
  std::string text =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", dtype, dims);
  // Magic, version and length take 10 bytes; the data begin at a multiple of 64, after a newline.
  const std::size_t total = (10 + text.size() + 1 + 63) / 64 * 64;
  text.append(total - 10 - text.size() - 1, ' ').push_back('\n');
  std::string file(kMagic);
  file += '\x01';
  file += '\x00';
  file += static_cast<char>(text.size() & 0xff);
  file += static_cast<char>(text.size() >> 8);
  file += text;
  file.append(static_cast<const char*>(data), bytes);
  return file;
}

std::string make_npy_half(const std::vector<std::int64_t>& shape, std::span<const float> values) {
  std::vector<std::uint16_t> halves(values.size());
  floats_to_halves(values, halves);
  return make_npy("<f2", shape, halves.data(), halves.size() * 2);
}

void check_halves(std::span<const float> values, std::string_view what) {
  for (const float value : values) {
    if (!std::isfinite(value)) fail("{} has values that are not finite", what);
    if (!std::isfinite(half_to_float(float_to_half(value))))
      fail("{} has the value {}, beyond the range of half precision (65504)", what, value);
  }
}

std::string make_npy_float(const std::vector<std::int64_t>& shape, std::span<const float> values) {
  return make_npy("<f4", shape, values.data(), values.size_bytes());
}

std::vector<float> npy_floats(std::string_view bytes, std::string_view what) {
  const NpyHeader header = parse_npy(bytes, what);
  const char* data = bytes.data() + header.data_offset;
  std::vector<float> values(static_cast<std::size_t>(header.elements()));
  if (header.dtype != "<f2" && header.dtype != "<f4" && header.dtype != "<f8")
    fail("{} has dtype '{}', a float type is needed", what, header.dtype);
  if (values.empty()) return values;  // memcpy() must not get null, even for 0 bytes.
  if (header.dtype == "<f4") {
    std::memcpy(values.data(), data, values.size() * 4);
  } else if (header.dtype == "<f2") {
    std::vector<std::uint16_t> halves(values.size());
    std::memcpy(halves.data(), data, halves.size() * 2);
    halves_to_floats(halves, values);
  } else {
    for (std::size_t i = 0; i < values.size(); ++i) {
      double wide;
      std::memcpy(&wide, data + 8 * i, 8);
      values[i] = static_cast<float>(wide);
    }
  }
  return values;
}

std::vector<std::int64_t> npy_integers(std::string_view bytes, std::string_view what) {
  const NpyHeader header = parse_npy(bytes, what);
  const std::size_t size = header.item_size();
  const char kind = header.dtype[1];
  if (kind != 'i' && kind != 'u')
    fail("{} has dtype '{}', an integer type is needed", what, header.dtype);
  std::vector<std::int64_t> values(static_cast<std::size_t>(header.elements()));
  const char* data = bytes.data() + header.data_offset;
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, data + size * i, size);
    const unsigned spare = static_cast<unsigned>(64 - 8 * size);
    values[i] = static_cast<std::int64_t>(bits << spare);
    values[i] = kind == 'i' ? values[i] >> spare : static_cast<std::int64_t>(bits);
  }
  return values;
}

}  // namespace vfm::io
