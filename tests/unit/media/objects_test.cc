// Videos in a bucket: the same pictures and sound as from a disk, by few requests.
// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <catch2/catch.hpp>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "io/object_server.h"
#include "io/remote/remote_file.h"
#include "media/container/far_bytes.h"
#include "media/decode/decoder.h"
#include "media/far_source.h"
#include "media/sound/sound_meter.h"
#include "media_files.h"

using namespace vfm::media;

namespace {

std::string pictures_of(const std::string& source) {
  Decoder decoder(source);
  std::string all;
  for (Frame frame; decoder.next(frame);) {
    all += std::to_string(frame.pts) + " ";
    all.append(reinterpret_cast<const char*>(frame.plane[0]),
               static_cast<std::size_t>(frame.width));
  }
  return all;
}

std::string error_in(const std::function<void()>& act) {
  try {
    act();
  } catch (const vfm::Error& error) {
    return error.what();
  }
  return "";
}

/// A video of some megabytes with sound, whose index is at its end.
std::string made_video() {
  std::string file = media_files::path("object.mp4");
  media_files::run(
      "ffmpeg -v error -y -f lavfi -i color=gray:s=320x240:r=25:d=4,noise=alls=100:allf=t "
      "-f lavfi -i sine=d=4 -c:v mpeg4 -q:v 1 -g 5 -c:a aac -movflags 0 " +
      file);
  return file;
}

}  // namespace

TEST_CASE("a video of a bucket has the pictures and the sound of the file") {
  NEED_FFMPEG();
  const std::string file = made_video(), bytes = media_files::read(file);
  vfm::ObjectServer server;
  const std::string bucket = server.new_bucket();
  const std::string address = bucket + "/raw/a.mp4";
  server.put(address.substr(4), bytes);  // "/bucket/raw/a.mp4"
  CHECK(pictures_of(address) == pictures_of(file));
  const vfm::Span all{0, 4000, {1, 1000}};
  CHECK(SoundMeter(address, 0).measure(all)->loudness ==
        SoundMeter(file, 0).measure(all)->loudness);
  CHECK(error_in([&] { Decoder(bucket + "/raw/none.mp4"); }) ==
        "cannot open '" + bucket + "/raw/none.mp4': no such object");
}

TEST_CASE("the index at the end of a video costs no megabytes") {
  NEED_FFMPEG();
  const std::string file = media_files::path("long_object.mp4");
  media_files::run(
      "ffmpeg -v error -y -f lavfi -i testsrc2=s=320x240:r=25:d=120 -c:v mpeg4 -q:v 2 -g 25 "
      "-movflags 0 " +
      file);
  const std::string bytes = media_files::read(file);
  REQUIRE(bytes.size() > std::size_t{8} << 20);
  vfm::ObjectServer server;
  const std::string address = server.new_bucket() + "/a.mp4";
  server.put(address.substr(4), bytes);
  std::atomic<std::size_t> sent{0};
  server.after = [&](const vfm::ServedRequest& request, int, vfm::ServedAnswer& answer) {
    if (request.method == "GET") sent += answer.body.size();  // HEAD is answered without the body.
  };
  Decoder decoder(address);
  CHECK(sent.load() <= std::size_t{2} << 20);
  CHECK(server.count("GET") <= 4);
}

TEST_CASE("all readers of a source read one version of it") {
  NEED_FFMPEG();
  const std::string bytes = media_files::read(made_video());
  vfm::ObjectServer server;
  const std::string address = server.new_bucket() + "/a.mp4";
  server.put(address.substr(4), bytes);
  auto object = open_far_source(address);
  CHECK(open_far_source(address) == object);
  CHECK(server.count("HEAD") == 1);
  server.put(address.substr(4), bytes + "more");
  CHECK(error_in([&] { pictures_of(address); }) ==
        "'" + address + "' has changed while it was read; read it again");
  object.reset();
  CHECK_FALSE(pictures_of(address).empty());
}

TEST_CASE("a thread reads an object for a child, which gets its bytes and its errors") {
  vfm::ObjectServer server;
  const std::string address = server.new_bucket() + "/a";
  std::string bytes(std::size_t{1} << 20, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<char>(i * 2654435761 >> 13);
  server.put(address.substr(4), bytes);
  FarServer parent(address);
  CHECK(parent.facts().size == bytes.size());
  CHECK(parent.facts().jumps == 1);
  // As a child asks: struct FarAsk, then struct FarAnswer with the bytes.
  const vfm::share::Descriptor channel = parent.take_channel();
  const auto ask = [&](std::uint64_t offset, std::uint64_t size, std::uint8_t& failed) {
    const std::uint64_t numbers[] = {offset, size};
    struct {
      std::uint8_t failed = 0;
      vfm::Cause cause = vfm::Cause::other;
    } answer;
    std::string text;
    std::vector<vfm::share::Descriptor> none;
    REQUIRE(vfm::share::send_message(channel.get(), numbers, sizeof numbers, {}));
    REQUIRE(vfm::share::receive_message(channel.get(), &answer, sizeof answer, text, none));
    failed = answer.failed;
    return text;
  };
  std::uint8_t failed = 0;
  for (const std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{900000}, std::uint64_t{5}}) {
    const std::string got = ask(offset, 1000, failed);
    CHECK(failed == 0);
    CHECK_FALSE(got.empty());
    CHECK(bytes.compare(offset, got.size(), got) == 0);
  }
  CHECK(ask(bytes.size() + 7, 1000, failed).empty());  // a hostile child may ask for anything
  CHECK(ask(0, UINT64_MAX, failed).size() <= vfm::share::kMostMessageText);
  server.put(address.substr(4), bytes + "x");
  CHECK(ask(700000, 1000, failed).find("has changed") != std::string::npos);
  CHECK(failed == 1);
}
