// SPDX-License-Identifier: Apache-2.0
#include "io/zip.h"

#include <algorithm>
#include <cstdint>

#include "base/error.h"

namespace vfm::io {
namespace {

constexpr std::uint32_t kLocalHeader = 0x04034b50, kCentralHeader = 0x02014b50;
constexpr std::uint32_t kEnd = 0x06054b50, kEnd64 = 0x06064b50, kEnd64Locator = 0x07064b50;
constexpr std::uint32_t kSize32 = 0xffffffff;  // The zip64 field has the size.
constexpr std::size_t kEndSize = 22, kMaxComment = 65535;

class Reader {
 public:
  Reader(std::span<const std::byte> bytes, std::string_view what) : bytes_(bytes), what_(what) {}

  std::span<const std::byte> part(std::uint64_t at, std::uint64_t size) const {
    if (at > bytes_.size() || size > bytes_.size() - at)
      fail("the zip archive {} is damaged or cut off", what_);
    return bytes_.subspan(at, size);
  }
  std::uint64_t number(std::uint64_t at, std::size_t size) const {
    std::uint64_t value = 0;
    std::size_t shift = 0;
    for (const std::byte byte : part(at, size)) {
      value |= std::to_integer<std::uint64_t>(byte) << shift;
      shift += 8;
    }
    return value;
  }
  std::string text(std::uint64_t at, std::uint64_t size) const {
    const auto bytes = part(at, size);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  std::uint64_t size() const { return bytes_.size(); }
  std::string_view what() const { return what_; }

 private:
  std::span<const std::byte> bytes_;
  std::string_view what_;
};

struct Directory {
  std::uint64_t entries = 0, at = 0;
};

// The end record is the last part of the archive, except for a comment.
Directory find_directory(const Reader& in) {
  const std::uint64_t first =
      in.size() > kEndSize + kMaxComment ? in.size() - kEndSize - kMaxComment : 0;
  for (std::uint64_t end = in.size() < kEndSize ? 0 : in.size() - kEndSize + 1; end-- > first;) {
    if (in.number(end, 4) != kEnd) continue;
    if (end >= 20 && in.number(end - 20, 4) == kEnd64Locator) {
      const std::uint64_t at = in.number(end - 12, 8);
      if (in.number(at, 4) != kEnd64) break;
      return {in.number(at + 32, 8), in.number(at + 48, 8)};
    }
    return {in.number(end + 10, 2), in.number(end + 16, 4)};
  }
  fail("the zip archive {} is damaged or cut off: it has no directory", in.what());
}

struct Entry {
  std::string name;
  std::uint64_t size = 0, header = 0, next = 0;
  bool stored = false;  // Neither compressed nor encrypted.
};

Entry read_entry(const Reader& in, std::uint64_t at) {
  if (in.number(at, 4) != kCentralHeader)
    fail("the directory of the zip archive {} is damaged", in.what());
  const std::uint64_t name = in.number(at + 28, 2), extra = in.number(at + 30, 2);
  Entry entry{in.text(at + 46, name), in.number(at + 24, 4), in.number(at + 42, 4),
              at + 46 + name + extra + in.number(at + 32, 2), false};
  entry.stored = (in.number(at + 8, 2) & 1) == 0 && in.number(at + 10, 2) == 0;
  std::uint64_t packed = in.number(at + 20, 4);
  // The zip64 field has 64-bit values of only those fields that are kSize32, in this order.
  for (std::uint64_t field = at + 46 + name, end = field + extra; field + 4 <= end;
       field += 4 + in.number(field + 2, 2)) {
    if (in.number(field, 2) != 1) continue;
    std::uint64_t value = field + 4;
    for (std::uint64_t* wide : {&entry.size, &packed, &entry.header}) {
      if (*wide != kSize32) continue;
      *wide = in.number(value, 8);
      value += 8;
    }
    break;
  }
  if (entry.stored && packed != entry.size)
    fail("'{}' in the zip archive {} has two different sizes", entry.name, in.what());
  return entry;
}

}  // namespace

bool looks_like_zip(std::span<const std::byte> bytes) {
  return bytes.size() >= 4 && Reader(bytes, {}).number(0, 4) == kLocalHeader;
}

ZipMembers parse_zip(std::span<const std::byte> bytes, std::string_view what) {
  const Reader in(bytes, what);
  Directory directory = find_directory(in);
  ZipMembers members;
  for (; directory.entries > 0; --directory.entries) {
    Entry entry = read_entry(in, directory.at);
    directory.at = entry.next;
    if (!entry.stored) continue;
    if (in.number(entry.header, 4) != kLocalHeader)
      fail("'{}' in the zip archive {} is not where its directory says", entry.name, what);
    // The local header has an extra field of its own, which aligns the data.
    const std::uint64_t data =
        entry.header + 30 + in.number(entry.header + 26, 2) + in.number(entry.header + 28, 2);
    if (!members.emplace(entry.name, in.part(data, entry.size)).second)
      fail("'{}' is in the zip archive {} twice", entry.name, what);
  }
  return members;
}

}  // namespace vfm::io
