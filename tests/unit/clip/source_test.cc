// Inputs of vfm-clip as pieces of work.
// SPDX-License-Identifier: Apache-2.0
#include "clip/source.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/json.h"
#include "io/input_lines.h"
#include "support/parts.h"
#include "support/temporary_folder.h"

using namespace vfm;
using namespace vfm::clip;

namespace {

using Lines = std::vector<std::string>;

const std::string kStillPng = std::string("\x89PNG\r\n\x1a\n....IHDR....IDAT....acTL");
const std::string kMovingPng = std::string("\x89PNG\r\n\x1a\n....IHDR....acTL....IDAT");
const std::string kMovingWebp = "RIFF....WEBPVP8X....\x02...";

/// Each item in a line: its kind, its sources without the folder, and what is said of it.
Lines items_text(const TemporaryFolder& folder, ClipItems& items) {
  const auto brief = [&](const std::string& text) { return replaced(text, folder.path + "/", ""); };
  const char* const kinds[] = {"video", "images", "passed", "duplicate", "bad", "joined"};
  Lines lines;
  while (const auto item = items.next()) {
    std::string line = kinds[static_cast<int>(item->kind)];
    for (const ClipSource& source : item->sources)
      line += " " + (source.path.empty() ? dump_json(source.record) : brief(source.path));
    if (!item->message.empty()) line += " " + brief(item->input) + ": " + brief(item->message);
    if (item->kind == ClipItem::Kind::bad) line += " (" + std::string(to_string(item->cause)) + ")";
    lines.push_back(line + (item->unread ? " unread" : ""));
  }
  CHECK_FALSE(items.next());
  return lines;
}

}  // namespace

TEST_CASE("inputs become videos, batches of pictures, what passes, and what cannot be used") {
  const TemporaryFolder folder, scratch;
  folder.write("a.mp4", "first");
  folder.write("b.mp4", "first");
  folder.write("c.mp4", "other");
  folder.write("1.png", kStillPng + "1");
  folder.write("2.PNG", kStillPng + "2");
  folder.write("3.png", kStillPng + "3");
  folder.write("4.jpg", "4");
  folder.write("5.jpeg", "5");
  folder.write("6.webp", kMovingWebp);
  folder.write("7.png", kMovingPng);
  folder.write("8.png", kStillPng + "2");
  folder.write("9.png", kStillPng + "9");
  folder.write("folder/x", "");
  folder.write("list.jsonl",
               "{\"kind\":\"shard\",\"path\":\"x.tar\"}\n"
               "{\"kind\":\"image\",\"path\":\"" +
                   folder / "9.png" +
                   "\"}\n"
                   "no record\x01\n"
                   "{\"kind\":\"video\"}\n");
  std::vector<std::string> inputs;
  for (const char* name : {"a.mp4", "1.png", "2.PNG", "3.png", "4.jpg", "5.jpeg", "b.mp4", "6.webp",
                           "7.png", "8.png", "none.mp4", "folder", "list.jsonl", "c.mp4"})
    inputs.push_back(folder / name);
  // Two pictures of PNG, and not three.
  ClipItems items(inputs, 2 * (kStillPng.size() + 1), scratch.path);
  const Lines lines = items_text(folder, items);
  REQUIRE(lines.size() == 15);
  CHECK(lines[0] == "video a.mp4");
  CHECK(lines[1] == "images 1.png 2.PNG");
  CHECK(lines[2] == "images 3.png");
  CHECK(lines[3] == "images 4.jpg 5.jpeg");
  CHECK(lines[4] == "duplicate b.mp4 b.mp4: has the same contents as 'a.mp4'");
  CHECK(lines[5] == "video 6.webp");
  CHECK(lines[6] == "video 7.png");
  CHECK(lines[7] == "duplicate 8.png 8.png: has the same contents as '2.PNG'");
  CHECK_THAT(lines[8], Catch::StartsWith("bad none.mp4: cannot open 'none.mp4'") &&
                           Catch::EndsWith("(open)"));
  CHECK(lines[9] ==
        "bad folder: 'folder' is a folder, not a video; for the videos in it: find 'folder' -type "
        "f | vfm-clip ... (open)");
  CHECK(lines[10] == R"(passed {"kind":"shard","path":"x.tar"})");
  CHECK(lines[11] == "images 9.png");
  CHECK_THAT(lines[12], Catch::StartsWith("bad line 3 of 'list.jsonl': "));
  CHECK_THAT(lines[13], Catch::StartsWith("bad line 4 of 'list.jsonl': "));
  CHECK(lines[14] == "video c.mp4");
}

TEST_CASE("nothing is read of inputs that need no identity") {
  const TemporaryFolder folder;
  ClipItems items({folder / "none.mp4", folder / "none.png", folder / "none.png"}, 0, "");
  CHECK(items_text(folder, items) == Lines{"video none.mp4", "video none.png", "video none.png"});
}

TEST_CASE("an item is known by the contents of its sources") {
  const TemporaryFolder folder, scratch;
  folder.write("a.mp4", "first");
  folder.write("b.png", "second");
  folder.write("c.png", "third");
  ClipItems items({folder / "a.mp4", folder / "b.png", folder / "c.png", "file:///a/c.mp4"}, 1000,
                  scratch.path);
  const ClipItem video = *items.next(), pictures = *items.next(), url = *items.next();
  CHECK(video.sources[0].hash == hash_hex("first"));
  CHECK(video.sources[0].bytes == 5);
  CHECK(video.sources[0].spans == nullptr);
  CHECK(dump_json(video.sources[0].record) ==
        dump_json({{"kind", "video"}, {"path", folder / "a.mp4"}}));
  CHECK(store_name(video) == hash_hex("first").substr(0, 16));
  const std::string both = hash_hex(hash_hex("second") + hash_hex("third")).substr(0, 16);
  CHECK(store_name(pictures) == both);
  ClipItem joined = pictures;
  joined.kind = ClipItem::Kind::joined;
  CHECK(store_name(joined) == "joined-" + both);
  CHECK(url.sources[0].hash == hash_hex("file:///a/c.mp4"));
  CHECK(url.sources[0].bytes == 0);
}

TEST_CASE("a source without spans is not read, where spans are given, but pictures are") {
  const TemporaryFolder folder, scratch;
  folder.write("a.mp4", "first");
  folder.write("c.png", kStillPng);
  folder.write("d.png", kMovingPng);
  folder.write("e.png", kMovingPng + "more");
  GivenSpans spans({}, "", {});
  spans.add(folder / "a.mp4", false, {});
  spans.add(folder / "e.png", false, {});
  ClipItems items(
      {folder / "a.mp4", folder / "b.mp4", folder / "c.png", folder / "d.png", folder / "e.png"},
      1000, scratch.path);
  items.use(&spans);
  const std::string none = ": has no span in the files of --spans unread";
  CHECK(items_text(folder, items) == Lines{"video a.mp4", "duplicate b.mp4" + none, "images c.png",
                                           "duplicate d.png" + none, "video e.png"});
}

TEST_CASE("pictures are known by their extensions, and animations by their first bytes") {
  const auto extension = [](const char* name) {
    return image_extension(std::string("a/x.") + name);
  };
  CHECK(extension("jpg") == "jpg");
  CHECK(extension("JPEG") == "jpg");
  CHECK(extension("tif") == "tiff");
  CHECK(extension("tiff") == "tiff");
  CHECK(extension("png") == "png");
  CHECK(extension("webp") == "webp");
  CHECK(extension("bmp") == "bmp");
  CHECK(extension("gif").empty());
  CHECK(image_extension("png").empty());
  CHECK(is_animation(kMovingPng));
  CHECK_FALSE(is_animation(kStillPng));
  CHECK_FALSE(is_animation("....IHDR....acTL....IDAT"));
  CHECK_FALSE(is_animation(kStillPng.substr(0, 20)));
  CHECK(is_animation(kMovingWebp));
  CHECK(is_animation("RIFF....WEBPVP8X....\x12"));
  CHECK_FALSE(is_animation("RIFF....WEBPVP8X....\x10"));
  CHECK_FALSE(is_animation("RIFF....WEBPVP8X...."));
  CHECK_FALSE(is_animation("RIFF....WEBPVP8L....\x02"));
  CHECK_FALSE(is_animation("XIFF....WEBPVP8X....\x02"));
}

TEST_CASE("few videos have several threads each, lists of unknown length two") {
  const auto threads = [](std::size_t videos, int slots) {
    return decoder_threads(std::vector<std::string>(videos, "a.mp4"), slots);
  };
  CHECK(threads(1, 1) == 1);
  CHECK(threads(1, 8) == 8);
  CHECK(threads(1, 17) == 16);
  CHECK(threads(3, 8) == 2);
  CHECK(threads(9, 8) == 1);
  CHECK(threads(0, 8) == 8);
  CHECK(threads(5000, 2000) == 2);
  for (const std::string& list :
       {std::string("-"), io::kNames, std::string("x.jsonl"), std::string("x.ndjson")}) {
    CHECK(decoder_threads({"a.mp4", list}, 8) == 2);
    CHECK(decoder_threads({list}, 1) == 1);
  }
}
