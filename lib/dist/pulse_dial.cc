// SPDX-License-Identifier: Apache-2.0
#include "dist/pulse_dial.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace vfm::dist {
namespace {

constexpr std::size_t kHalf = 16;  // of a token
constexpr int kFlags = SOCK_CLOEXEC | SOCK_NONBLOCK;

/// An address of either family.
struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;
  sockaddr* any() { return reinterpret_cast<sockaddr*>(&storage); }
  sockaddr_in& v4() { return reinterpret_cast<sockaddr_in&>(storage); }
  sockaddr_in6& v6() { return reinterpret_cast<sockaddr_in6&>(storage); }
};

Address address_of(const std::string& text, int port) {
  Address address;
  const auto number = htons(static_cast<std::uint16_t>(port));
  if (::inet_pton(AF_INET, text.c_str(), &address.v4().sin_addr) == 1) {
    address.storage.ss_family = AF_INET;
    address.v4().sin_port = number;
    address.size = sizeof(sockaddr_in);
  } else if (::inet_pton(AF_INET6, text.c_str(), &address.v6().sin6_addr) == 1) {
    address.storage.ss_family = AF_INET6;
    address.v6().sin6_port = number;
    address.size = sizeof(sockaddr_in6);
  }
  return address;
}

std::string text_of(const sockaddr* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* bytes = nullptr;
  if (address->sa_family == AF_INET)
    bytes = &reinterpret_cast<const sockaddr_in*>(address)->sin_addr;
  else if (address->sa_family == AF_INET6)
    bytes = &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
  if (!bytes || !::inet_ntop(address->sa_family, bytes, text.data(), text.size())) return "";
  constexpr std::string_view kMapped = "::ffff:";  // of the other family
  const std::string whole = text.data();
  return whole.starts_with(kMapped) ? whole.substr(kMapped.size()) : whole;
}

bool listens(int fd, Address address, int waiting) {
  return fd >= 0 && ::bind(fd, address.any(), address.size) == 0 && ::listen(fd, waiting) == 0;
}

}  // namespace

PulseToken draw_pulse_token() {
  PulseToken token{};
  if (::getrandom(token.data(), token.size(), 0) != static_cast<ssize_t>(token.size()))
    fail("the system gives no random numbers: {}", errno_text(errno));
  return token;
}

PulseListener listen_for_pulse(bool everywhere, int waiting) {
  PulseListener listener;
  if (everywhere) {
    const int no = 0;
    listener.fd = ::socket(AF_INET6, SOCK_STREAM | kFlags, 0);
    if (listener.fd >= 0) ::setsockopt(listener.fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
    if (!listens(listener.fd, address_of("::", 0), waiting) && listener.fd >= 0)
      ::close(std::exchange(listener.fd, -1));
  }
  if (listener.fd < 0) {
    listener.fd = ::socket(AF_INET, SOCK_STREAM | kFlags, 0);
    if (!listens(listener.fd, address_of(everywhere ? "0.0.0.0" : "127.0.0.1", 0), waiting) &&
        listener.fd >= 0)
      ::close(std::exchange(listener.fd, -1));
  }
  Address bound;
  bound.size = sizeof bound.storage;
  if (listener.fd >= 0 && ::getsockname(listener.fd, bound.any(), &bound.size) == 0)
    listener.port =
        ntohs(bound.storage.ss_family == AF_INET ? bound.v4().sin_port : bound.v6().sin6_port);
  return listener;
}

std::vector<std::string> own_addresses() {
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return {"127.0.0.1"};
  std::vector<std::string> addresses, last;
  for (const ifaddrs* one = all; one; one = one->ifa_next) {
    if (!one->ifa_addr || (one->ifa_flags & IFF_UP) == 0) continue;
    const std::string text = text_of(one->ifa_addr);
    if (text.empty() || text.starts_with("fe80:")) continue;  // an address of one link alone
    (one->ifa_flags & IFF_LOOPBACK ? last : addresses).push_back(text);
  }
  ::freeifaddrs(all);
  addresses.insert(addresses.end(), last.begin(), last.end());
  return addresses;
}

void allow_descriptors(int more) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  constexpr rlim_t kProgram = 1024;  // what the program itself may have open
  const rlim_t wanted = kProgram + static_cast<rlim_t>(more);
  if (more < 256 || limit.rlim_cur >= wanted) return;
  limit.rlim_cur = limit.rlim_max == RLIM_INFINITY ? wanted : std::min(limit.rlim_max, wanted);
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

PulseDial::PulseDial(int rank, const PulseToken& token, double seconds, Made made)
    : rank_(rank), token_(token), made_(std::move(made)), seconds_(seconds) {}

PulseDial::~PulseDial() {
  if (listener_ >= 0) ::close(listener_);
  for (const Try& one : tries_)
    ::close(one.fd);
}

void PulseDial::await(PulseListener listener, std::vector<int> ranks) {
  listener_ = listener.fd;
  missing_.insert(missing_.end(), ranks.begin(), ranks.end());
}

void PulseDial::call(int rank, const std::vector<std::string>& addresses, int port) {
  missing_.push_back(rank);
  for (const std::string& text : addresses) {
    Address address = address_of(text, port);
    const int fd = ::socket(address.storage.ss_family, SOCK_STREAM | kFlags, 0);
    if (fd < 0) continue;
    if (::connect(fd, address.any(), address.size) == 0 || errno == EINPROGRESS)
      tries_.push_back({fd, rank, text, true});
    else
      ::close(fd);
  }
}

std::vector<PulseDial::Wanted> PulseDial::descriptors() const {
  std::vector<Wanted> all;
  if (listener_ >= 0) all.push_back({listener_, false});
  for (const Try& one : tries_)
    all.push_back({one.fd, one.connecting});
  return all;
}

bool PulseDial::done() const {
  return missing_.empty() || seconds_ <= 0;
}

void PulseDial::made(int rank, int fd, const std::string& address) {
  std::erase(missing_, rank);
  made_(rank, fd, address);
}

void PulseDial::accept_all() {
  for (;;) {
    Address from;
    from.size = sizeof from.storage;
    const int fd = ::accept4(listener_, from.any(), &from.size, kFlags);
    if (fd < 0) return;
    tries_.push_back({fd, -1, text_of(from.any()), false});
  }
}

/// Whether so many bytes have come. Throws Error when no more come.
bool PulseDial::receive(Try& one, std::size_t size) {
  std::array<char, 64> buffer;
  while (one.in.size() < size) {
    const ssize_t got =
        ::recv(one.fd, buffer.data(), std::min(buffer.size(), size - one.in.size()), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
    if (got <= 0) fail("closed");
    one.in.append(buffer.data(), static_cast<std::size_t>(got));
  }
  return true;
}

/// Returns whether the connection stands. Throws Error if it never will.
bool PulseDial::go_on(Try& one) {
  const std::string_view token(token_.data(), token_.size());
  const std::string_view childs = token.substr(0, kHalf), parents = token.substr(kHalf);
  const auto say = [&](std::string_view text) {
    if (::send(one.fd, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT) !=
        static_cast<ssize_t>(text.size()))
      fail("closed");
  };
  std::int32_t rank = rank_;
  if (one.rank < 0) {  // token and rank of a child; the parent's token; a byte: it is taken
    if (!receive(one, kHalf + sizeof rank)) return false;
    std::memcpy(&rank, one.in.data() + kHalf, sizeof rank);
    if (one.in.compare(0, kHalf, childs) != 0 ||
        std::find(missing_.begin(), missing_.end(), rank) == missing_.end())
      fail("no rank of this run");
    if (!std::exchange(one.shown, true)) say(parents);
    if (!receive(one, kHalf + sizeof rank + 1)) return false;
    one.rank = rank;
    return true;
  }
  if (one.connecting) {
    int error = 0;
    socklen_t size = sizeof error;
    Address peer;
    peer.size = sizeof peer.storage;
    ::getsockopt(one.fd, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) fail("{}", errno_text(error));
    if (::getpeername(one.fd, peer.any(), &peer.size) != 0) return false;  // not yet
    one.connecting = false;
    std::string hello(childs);
    hello.append(reinterpret_cast<const char*>(&rank), sizeof rank);
    say(hello);
  }
  if (!receive(one, kHalf)) return false;
  if (one.in != parents) fail("another program");
  say("!");
  return true;
}

void PulseDial::turn(double passed) {
  seconds_ -= passed;
  if (listener_ >= 0) accept_all();
  for (std::size_t i = 0; i < tries_.size();) {
    bool keep = false;
    try {
      const int wanted = tries_[i].rank;
      if (wanted >= 0 && std::find(missing_.begin(), missing_.end(), wanted) == missing_.end())
        fail("another address was faster");
      keep = !go_on(tries_[i]);
      if (!keep) {
        made(tries_[i].rank, std::exchange(tries_[i].fd, -1), tries_[i].address);
      }
    } catch (const Error&) {  // what never comes is missing
      ::close(std::exchange(tries_[i].fd, -1));
    }
    if (keep)
      ++i;
    else
      tries_.erase(tries_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  if (!done()) return;
  if (listener_ >= 0) ::close(std::exchange(listener_, -1));
  for (const Try& one : tries_)
    ::close(one.fd);
  tries_.clear();
}

}  // namespace vfm::dist
