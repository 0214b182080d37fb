// Bytes of an object that are fetched when they are needed, and no others.
// SPDX-License-Identifier: Apache-2.0
#include "io/lazy_map.h"

#include <catch2/catch.hpp>
#include <cstring>

#include "base/error.h"

using namespace vfm;
using namespace vfm::io;

namespace {

/// An object in memory that notes which bytes were asked for.
class MemoryObject final : public RemoteFile {
 public:
  explicit MemoryObject(std::string contents) : contents_(std::move(contents)) {}
  const std::string& address() const override { return address_; }
  std::uint64_t size() const override { return contents_.size(); }
  const std::string& version() const override { return version_; }
  const std::string& stored_hash() const override { return none_; }
  bool has_ranges() const override { return true; }
  void pread_exact(void* out, std::size_t size, std::uint64_t offset) const override {
    if (fails) fail("the store is gone");
    bytes_read += size;
    std::memcpy(out, contents_.data() + offset, size);
  }
  void pread_all(std::span<const Range> ranges,
                 const std::function<void(std::size_t)>& done) const override {
    ++calls;
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      pread_exact(ranges[i].out.data(), ranges[i].out.size(), ranges[i].offset);
      if (done) done(i);
    }
  }

  mutable std::uint64_t bytes_read = 0;
  mutable int calls = 0;
  bool fails = false;

 private:
  std::string contents_, address_ = "s3://bucket/object", version_ = "1", none_;
};

std::string lazy_contents(std::size_t bytes) {
  std::string text(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i)
    text[i] = static_cast<char>(i * 7 + i / 4096);
  return text;
}

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

TEST_CASE("of an object in memory the pages that are needed are fetched, each once") {
  const std::string contents = lazy_contents(1'000'001);
  const auto object = std::make_shared<MemoryObject>(contents);
  LazyMap map(object);
  CHECK(has_lazy_maps());
  REQUIRE(map.bytes().size() == contents.size());
  CHECK(object->bytes_read == 0);
  const auto part = map.bytes().subspan(5000, 10);
  need_bytes(part);
  CHECK(text_of(part) == contents.substr(5000, 10));
  CHECK(object->bytes_read == 4096);
  // Several parts by one call, and of the last page what there is.
  const std::vector<std::span<const std::byte>> parts = {
      map.bytes().last(1), map.bytes().subspan(4090, 20), map.bytes().subspan(100'000, 50'000)};
  need_bytes(parts);
  CHECK(object->calls == 2);
  for (const auto one : parts)
    CHECK(text_of(one) ==
          contents.substr(static_cast<std::size_t>(one.data() - map.bytes().data()), one.size()));
  const std::uint64_t before = object->bytes_read;
  need_bytes(parts);
  CHECK(object->bytes_read == before);
  CHECK(before < 70'000);
  // Memory that was freed is read again from the disk.
  map.release(parts[2]);
  need_bytes(parts[2]);
  CHECK(text_of(parts[2]) == contents.substr(100'000, 50'000));
  CHECK(object->bytes_read == before);
  need_bytes(map.bytes());
  CHECK(text_of(map.bytes()) == contents);
  // Other memory is none of its business.
  need_bytes(std::as_bytes(std::span(contents)));
}

TEST_CASE("bytes that could not be fetched are asked for again") {
  const std::string contents = lazy_contents(20'000);
  const auto object = std::make_shared<MemoryObject>(contents);
  LazyMap map(object);
  object->fails = true;
  CHECK_THROWS_WITH(need_bytes(map.bytes()), "the store is gone");
  object->fails = false;
  need_bytes(map.bytes());
  CHECK(text_of(map.bytes()) == contents);
}

TEST_CASE("an empty object is an empty map") {
  LazyMap map(std::make_shared<MemoryObject>(""));
  CHECK(map.bytes().empty());
  need_bytes(map.bytes());
}
