// What counts as the time of a server, and what as its refusal.
// SPDX-License-Identifier: Apache-2.0
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/input_limits.h"
#include "io/remote/remote_file.h"
#include "media/container/input.h"
#include "media_files.h"
#include "support/loopback.h"

using namespace vfm::media;

namespace {

/// Serves one file on this machine, from whatever byte it is asked for, until it ends. If `refusal`
/// is not empty, it is the status of every answer, without a file.
class FileServer {
 public:
  explicit FileServer(std::string bytes, std::string refusal = "")
      : bytes_(std::move(bytes)),
        refusal_(std::move(refusal)),
        accepts_([this] { accept_all(); }) {}
  ~FileServer() {
    listener_.shut_down();
    accepts_.join();
    for (std::thread& one : answers_)
      one.join();
  }
  FileServer(const FileServer&) = delete;
  FileServer& operator=(const FileServer&) = delete;

  std::string url() const { return listener_.url("/a.mkv"); }

 private:
  void accept_all() {
    for (int one; (one = listener_.accept()) >= 0;)
      answers_.emplace_back([this, one] {
        answer(one);
        ::close(one);
      });
  }

  void answer(int one) const {
    std::string request;
    char part[1024];
    while (request.find("\r\n\r\n") == std::string::npos) {
      const ssize_t got = ::read(one, part, sizeof part);
      if (got <= 0) return;
      request.append(part, static_cast<std::size_t>(got));
    }
    const std::size_t range = request.find("bytes=");
    std::size_t from = 0, to = bytes_.size() - 1;
    if (range != std::string::npos) {
      char* end = nullptr;
      from = std::strtoull(request.c_str() + range + 6, &end, 10);
      to = std::min<std::size_t>(to, std::strtoull(end + 1, nullptr, 10));
    }
    std::string all =
        "HTTP/1.1 206 Partial Content\r\nAccept-Ranges: bytes\r\nContent-Range: bytes " +
        std::to_string(from) + "-" + std::to_string(to) + "/" + std::to_string(bytes_.size()) +
        "\r\nContent-Length: " + std::to_string(to - from + 1) + "\r\nConnection: close\r\n\r\n" +
        bytes_.substr(from, to - from + 1);
    if (!refusal_.empty())
      all = "HTTP/1.1 " + refusal_ + "\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    for (std::size_t sent = 0; sent < all.size();) {
      const ssize_t put = ::send(one, all.data() + sent, all.size() - sent, MSG_NOSIGNAL);
      if (put <= 0) return;
      sent += static_cast<std::size_t>(put);
    }
  }

  std::string bytes_, refusal_;
  vfm::Loopback listener_;
  std::vector<std::thread> answers_;
  std::thread accepts_;  // last: it uses all others
};

}  // namespace

TEST_CASE("what passes before a seek is not the server's time") {
  NEED_FFMPEG();
  // Large enough that the end has not come yet when the beginning is asked for again.
  const std::string file = media_files::path("noise.mkv");
  media_files::run(
      "ffmpeg -v error -y -f lavfi -i "
      "color=gray:s=320x240:r=25:d=4,noise=alls=100:allf=t -c:v mpeg4 -q:v 1 -g 5 " +
      file);
  const FileServer server(media_files::read(file));
  {
    Input input(Source{.name = server.url()});
    const int video = input.best_stream(AVMEDIA_TYPE_VIDEO);
    REQUIRE(video >= 0);
    const PacketPtr packet(av_packet_alloc());
    std::int64_t corrupt = 0, last = 0;
    for (int i = 0; i < 60; ++i) {
      REQUIRE(input.read(packet.get(), corrupt));
      last = packet->pts;
      av_packet_unref(packet.get());
    }
    REQUIRE(last > 0);
    // More than the ten times --timeout after which a server has had its time.
    vfm::set_input_limits({.timeout = 0.15});
    std::this_thread::sleep_for(std::chrono::milliseconds(1600));
    CHECK(input.seek(video, 0));
    vfm::set_input_limits({});
    REQUIRE(input.read(packet.get(), corrupt));
    CHECK(packet->pts == 0);
    CHECK(corrupt == 0);
  }
}

TEST_CASE(
    "a server that says that it does not give the file has refused; another failure may pass") {
  const auto cause = [](const std::string& status) {
    const FileServer server("x", status);
    try {
      Input input(Source{.name = server.url()});
    } catch (const vfm::Error& error) {
      return error.cause();
    }
    return vfm::Cause::other;
  };
  for (const char* status : {"400 Bad Request", "401 Unauthorized", "403 Forbidden", "404 No"})
    CHECK(cause(status) == vfm::Cause::open);
  vfm::io::limit_read_seconds(0.5);
  CHECK(cause("429 Too Many Requests") == vfm::Cause::disk);
  CHECK(cause("503 Service Unavailable") == vfm::Cause::disk);
  vfm::io::limit_read_seconds(0);
}
