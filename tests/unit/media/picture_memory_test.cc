// Pictures that codecs put into memory of ours: the same pictures, whatever room there is.
// SPDX-License-Identifier: Apache-2.0
#include "media/decode/picture_memory.h"

#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "frame_hash.h"
#include "media/decode/decoder.h"
#include "media_files.h"

using namespace vfm::media;
using media_files::path;

namespace {

/// Aligned, and never longer than a test.
struct Room {
  explicit Room(std::size_t bytes)
      : memory(static_cast<std::uint8_t*>(::operator new (bytes, std::align_val_t{64}))),
        size(bytes) {}
  ~Room() { ::operator delete (memory, std::align_val_t{64}); }
  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;
  bool holds(const std::uint8_t* at) const { return at >= memory && at < memory + size; }
  std::uint8_t* memory;
  std::size_t size;
};

struct PlacedFrames {
  std::vector<std::string> hashes;
  std::vector<Frame> last;  // frames that are kept meanwhile
  std::size_t inside = 0;   // whose planes lie in the room
};

/// Keeps the last `kept` frames.
PlacedFrames decode(const std::string& name, const DecodeOptions& options, const Room* room,
                    std::size_t kept = 0) {
  Decoder decoder(path(name), options);
  PlacedFrames decoded;
  for (Frame frame; decoder.next(frame);) {
    decoded.hashes.push_back(frame_hash(frame));
    decoded.inside += room && room->holds(frame.plane[0]);
    decoded.last.push_back(frame);
    if (decoded.last.size() > kept) decoded.last.erase(decoded.last.begin());
  }
  return decoded;
}

}  // namespace

TEST_CASE("memory of pictures is given in pieces that lie apart, and is whole again after them") {
  Room room(1 << 16);
  PictureMemory memory(room.memory, room.size);
  std::mt19937 draw(1);
  std::vector<std::pair<std::shared_ptr<std::uint8_t>, std::size_t>> pieces;
  for (int i = 0; i < 5000; ++i) {
    if (draw() % 2 == 0 && !pieces.empty()) {
      pieces.erase(pieces.begin() + static_cast<std::ptrdiff_t>(draw() % pieces.size()));
      continue;
    }
    const std::size_t size = 1 + draw() % 5000;
    const std::shared_ptr<std::uint8_t> piece = memory.take(size);
    if (!piece) continue;
    REQUIRE(reinterpret_cast<std::uintptr_t>(piece.get()) % PictureMemory::kAlign == 0);
    REQUIRE(room.holds(piece.get()));
    REQUIRE(room.holds(piece.get() + size - 1));
    for (const auto& [other, bytes] : pieces)
      REQUIRE((other.get() + bytes <= piece.get() || piece.get() + size <= other.get()));
    pieces.emplace_back(piece, size);
  }
  pieces.clear();
  CHECK(memory.take(room.size) != nullptr);
  CHECK(memory.take(room.size + 1) == nullptr);
  CHECK(memory.take(SIZE_MAX) == nullptr);
  CHECK(memory.take(0) == nullptr);
}

TEST_CASE("pictures in memory of ours are the same, and frames that are kept stay as they are") {
  NEED_FFMPEG();
  const auto [name, lies] = GENERATE(table<const char*, bool>({{"plain.mp4", true},
                                                               {"open_gop.mkv", true},
                                                               {"program.ts", true},
                                                               {"missing_pts.avi", true},
                                                               {"vp9.webm", true},
                                                               {"odd.mkv", true},
                                                               {"odd422.mkv", true},
                                                               {"gray.mkv", true},
                                                               {"jpeg.avi", true},
                                                               {"still.png", true},
                                                               {"alpha.mkv", false},
                                                               {"paletted.avi", false},
                                                               {"ten_bit.mp4", false}}));
  CAPTURE(name);
  const PlacedFrames own = decode(name, {}, nullptr);
  REQUIRE_FALSE(own.hashes.empty());
  // Much, none of which is left for a picture at some time, and too little for any.
  for (const std::size_t size : {std::size_t{8} << 20, std::size_t{100} << 10, std::size_t{4096}})
    for (const int threads : {1, 3}) {
      CAPTURE(size, threads);
      Room room(size);
      PictureMemory memory(room.memory, room.size);
      {
        const PlacedFrames ours =
            decode(name, {.threads = threads, .memory = &memory}, &room, own.hashes.size());
        CHECK(ours.hashes == own.hashes);
        if (size > std::size_t{1} << 20) CHECK(ours.inside == (lies ? ours.hashes.size() : 0));
        if (size == 4096) CHECK(ours.inside == 0);
        for (std::size_t i = 0; i < ours.last.size(); ++i)
          CHECK(frame_hash(ours.last[i]) == ours.hashes[i]);
      }
      CHECK(memory.take(room.size / 64 * 64) != nullptr);  // all of it is back
    }
}
