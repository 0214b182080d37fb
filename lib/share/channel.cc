// SPDX-License-Identifier: Apache-2.0
#include "share/channel.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "base/error.h"

namespace vfm::share {
namespace {

constexpr std::size_t kMostDescriptors = 2;

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

MappedMemory::MappedMemory(int fd, std::size_t size, bool writable) : size_(size) {
  void* const map =
      ::mmap(nullptr, size, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd, 0);
  if (map == MAP_FAILED) fail_errno(errno, "cannot map {} bytes", size);
  data_ = static_cast<std::uint8_t*>(map);
}
MappedMemory::~MappedMemory() {
  if (data_) ::munmap(data_, size_);
}
MappedMemory::MappedMemory(MappedMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
MappedMemory& MappedMemory::operator=(MappedMemory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

std::pair<Descriptor, Descriptor> make_channel(std::string_view to) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    fail_errno(errno, "cannot make a channel to {}", to);
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

bool send_message(int channel, const void* head, std::size_t size, std::string_view text,
                  const std::vector<int>& descriptors) {
  text = text.substr(0, kMostMessageText);
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
  // A buffer apart from `text`: resizing `text` to this size fills it with zeros, which costs more
  // than the message.
  thread_local const std::unique_ptr<char[]> room(new char[kMostMessageText]);
  text.clear();
  descriptors.clear();
  std::array<iovec, 2> parts{iovec{head, size}, iovec{room.get(), kMostMessageText}};
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

Cause checked_cause(Cause said, Cause otherwise) {
  return said >= Cause::other && said <= kLastCause ? said : otherwise;
}

}  // namespace vfm::share
