// SPDX-License-Identifier: Apache-2.0
#include "media/isolated_wire.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>

#include "base/json.h"

namespace vfm::media {
namespace {

constexpr std::size_t kMostText = std::size_t{64} << 10;  // below what a socket's buffer takes
constexpr std::size_t kMostDescriptors = 2;

int need_int(const Json& json, const char* name) {
  const std::int64_t value = need_integer(json, name, "a child's word");
  if (value < std::numeric_limits<int>::min() || value > std::numeric_limits<int>::max())
    fail("'{}' is no number that fits", name);
  return static_cast<int>(value);
}

Rational need_rational(const Json& json, const char* name) {
  const auto found = json.find(name);
  if (found == json.end() || !found->is_array() || found->size() != 2 ||
      !(*found)[0].is_number_integer() || !(*found)[1].is_number_integer())
    fail("'{}' is no rational", name);
  const Rational value{(*found)[0].get<std::int64_t>(), (*found)[1].get<std::int64_t>()};
  if (value.den <= 0) fail("'{}' is no rational", name);
  return value;
}

bool need_bool(const Json& json, const char* name) {
  return get_bool(json, name).value_or(false);
}

Json pair_of(Rational value) {
  return Json::array({value.num, value.den});
}

}  // namespace

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}
Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}
int Descriptor::release() noexcept {
  return std::exchange(fd_, -1);
}

Mapping::Mapping(int fd, std::size_t size, bool writable) : size_(size) {
  void* const map =
      ::mmap(nullptr, size, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd, 0);
  if (map == MAP_FAILED) fail_errno(errno, "cannot map {} bytes", size);
  data_ = static_cast<std::uint8_t*>(map);
}
Mapping::~Mapping() {
  if (data_) ::munmap(data_, size_);
}
Mapping::Mapping(Mapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

Request request_for(Ask ask, const Span& span, AudioMode mode) {
  Request request;
  request.ask = ask;
  request.begin = span.begin;
  request.end = span.end;
  request.base_num = span.base.num;
  request.base_den = span.base.den;
  request.mode = mode;
  return request;
}

bool send_message(int channel, const void* head, std::size_t size, std::string_view text,
                  const std::vector<int>& descriptors) {
  text = text.substr(0, kMostText);
  std::array<iovec, 2> parts{iovec{const_cast<void*>(head), size},
                             iovec{const_cast<char*>(text.data()), text.size()}};
  alignas(cmsghdr) char control[CMSG_SPACE(kMostDescriptors * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  if (!descriptors.empty()) {
    const std::size_t bytes = descriptors.size() * sizeof(int);
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(bytes);
    cmsghdr* const rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(bytes);
    std::memcpy(CMSG_DATA(rights), descriptors.data(), bytes);
  }
  ssize_t sent = 0;
  do {
    sent = ::sendmsg(channel, &message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(size + text.size());
}

bool receive_message(int channel, void* head, std::size_t size, std::string& text,
                     std::vector<Descriptor>& descriptors) {
  // Not `text` itself: to fill so much of it with zeros costs more than the message.
  thread_local const std::unique_ptr<char[]> room(new char[kMostText]);
  text.clear();
  descriptors.clear();
  std::array<iovec, 2> parts{iovec{head, size}, iovec{room.get(), kMostText}};
  alignas(cmsghdr) char control[CMSG_SPACE(kMostDescriptors * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t got = 0;
  do {
    got = ::recvmsg(channel, &message, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  for (cmsghdr* rights = got > 0 ? CMSG_FIRSTHDR(&message) : nullptr; rights;
       rights = CMSG_NXTHDR(&message, rights)) {
    if (rights->cmsg_level != SOL_SOCKET || rights->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t at = 0; CMSG_LEN(at + sizeof(int)) <= rights->cmsg_len; at += sizeof(int)) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(rights) + at, sizeof fd);
      descriptors.emplace_back(fd);
    }
  }
  if (got < static_cast<ssize_t>(size) || (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
    return false;
  text.assign(room.get(), static_cast<std::size_t>(got) - size);
  return true;
}

std::string pack_info(const StreamInfo& info) {
  return dump_json({{"stream", info.stream},
                    {"container", info.container},
                    {"codec", info.codec},
                    {"pixel_format", info.pixel_format},
                    {"width", info.width},
                    {"height", info.height},
                    {"sample_aspect", pair_of(info.sample_aspect)},
                    {"rotation", info.rotation},
                    {"mirror", info.mirror},
                    {"display_width", info.display_width},
                    {"display_height", info.display_height},
                    {"time_base", pair_of(info.time_base)},
                    {"frame_rate", pair_of(info.frame_rate)},
                    {"duration", info.duration},
                    {"frames", info.frames},
                    {"image", info.image},
                    {"interlaced", info.interlaced},
                    {"transfer", info.transfer},
                    {"primaries", info.primaries},
                    {"bit_depth", info.bit_depth},
                    {"has_audio", info.has_audio},
                    {"audio_codec", info.audio_codec}});
}

StreamInfo parse_info(const std::string& text) {
  constexpr const char* kWhat = "a child's word";
  const Json json = parse_json(text, kWhat);
  StreamInfo info;
  info.stream = need_int(json, "stream");
  info.container = need_string(json, "container", kWhat);
  info.codec = need_string(json, "codec", kWhat);
  info.pixel_format = need_string(json, "pixel_format", kWhat);
  info.width = need_int(json, "width");
  info.height = need_int(json, "height");
  info.sample_aspect = need_rational(json, "sample_aspect");
  info.rotation = need_int(json, "rotation");
  info.mirror = need_bool(json, "mirror");
  info.display_width = need_int(json, "display_width");
  info.display_height = need_int(json, "display_height");
  info.time_base = need_rational(json, "time_base");
  info.frame_rate = need_rational(json, "frame_rate");
  info.duration = need_number(json, "duration", kWhat);
  info.frames = need_integer(json, "frames", kWhat);
  info.image = need_bool(json, "image");
  info.interlaced = need_bool(json, "interlaced");
  info.transfer = need_int(json, "transfer");
  info.primaries = need_int(json, "primaries");
  info.bit_depth = need_int(json, "bit_depth");
  info.has_audio = need_bool(json, "has_audio");
  info.audio_codec = need_string(json, "audio_codec", kWhat);
  if (info.rotation % 90 != 0 || info.rotation < 0 || info.rotation >= 360)
    fail("a picture is turned by {} degrees", info.rotation);
  return info;
}

}  // namespace vfm::media
