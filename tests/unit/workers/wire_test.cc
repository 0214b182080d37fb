// The memory that a program and its worker share, and words that a worker may not say.
// SPDX-License-Identifier: Apache-2.0
#include "workers/wire.h"

#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "base/json.h"

using namespace vfm;
using namespace vfm::workers;

namespace {

Parcel parcel_of(std::size_t bytes) {
  return {"", Json::object(), {bytes_tensor(std::string(bytes, 'x'))}};
}

/// The other process's view of a room.
Room other_end(const Room& room, std::uint64_t most) {
  return Room(share::Descriptor(::dup(room.descriptor())), most);
}

}  // namespace

TEST_CASE("a room grows with what is put into it, and whoever reads follows") {
  constexpr std::uint64_t kMost = 8 << 20;
  Room room(kMost);
  Room other = other_end(room, kMost);
  for (const std::size_t bytes : {10u, 3u << 20, 5u, 5u << 20}) {
    const std::uint64_t size = room.put(parcel_of(bytes));
    for (const bool views : {false, true})
      CHECK(other.take(size, views).tensors.at(0).bytes() == bytes);
  }
  try {
    room.put(parcel_of(8 << 20));
    FAIL("more than the limit");
  } catch (const Error& error) {
    CHECK(error.cause() == Cause::limit);
  }
  // What was there is untouched by one that did not fit.
  CHECK(other.take(room.put(parcel_of(7)), false).tensors.at(0).bytes() == 7);
}

TEST_CASE("sizes that a worker says are believed as far as they can be") {
  constexpr std::uint64_t kMost = 8 << 20;
  Room theirs(kMost);
  Room ours = other_end(theirs, kMost);
  CHECK_THROWS_AS(ours.take(1, false), Error);  // nothing was put there
  const std::uint64_t size = theirs.put(parcel_of(100));
  CHECK_THROWS_AS(ours.take((1 << 20) + 1, false), Error);
  CHECK_THROWS_AS(ours.take(kMost + 1, false), Error);
  CHECK_THROWS_AS(ours.take(~std::uint64_t{0}, false), Error);
  CHECK_THROWS_AS(ours.take(size / 2, false), Error);
  CHECK_NOTHROW(ours.take(size, false));
  // Nobody makes it shorter under who reads it; one who makes it longer than allowed gains nothing.
  CHECK(::ftruncate(theirs.descriptor(), 1) != 0);
  REQUIRE(::ftruncate(theirs.descriptor(), 64 << 20) == 0);
  CHECK_THROWS_AS(ours.take(32 << 20, false), Error);
  CHECK_NOTHROW(ours.take(size, false));
}

TEST_CASE(
    "a worker's words are checked, and its errors are what they say as far as there are such") {
  CHECK(is_sound({.say = Say::answer}));
  CHECK(is_sound({.say = Say::log, .level = LogLevel::debug}));
  CHECK(is_sound({.say = Say::end}));
  CHECK_FALSE(is_sound({.say = Say::open}));
  CHECK_FALSE(is_sound({.say = Say::ask}));
  CHECK_FALSE(is_sound({.say = static_cast<Say>(77)}));
  CHECK_FALSE(is_sound({.say = Say::log, .level = static_cast<LogLevel>(9)}));
  const Error usage = told_error({.say = Say::error, .kind = ErrorKind::usage}, "no");
  CHECK(usage.kind() == ErrorKind::usage);
  CHECK(std::string(usage.what()) == "no");
  CHECK(told_error({.say = Say::error, .kind = ErrorKind::device}, "").kind() == ErrorKind::device);
  CHECK(told_error({.say = Say::error, .cause = Cause::decode}, "").cause() == Cause::decode);
  const Error odd = told_error(
      {.say = Say::error, .kind = static_cast<ErrorKind>(9), .cause = static_cast<Cause>(99)}, "");
  CHECK(odd.kind() == ErrorKind::runtime);
  CHECK(odd.cause() == Cause::other);
}
