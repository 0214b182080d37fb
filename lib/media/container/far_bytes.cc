// SPDX-License-Identifier: Apache-2.0
#include "media/container/far_bytes.h"

#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/thread_stop.h"
#include "io/remote/remote_file.h"
#include "media/decode/bounded.h"
#include "media/far_source.h"

namespace vfm::media {
namespace {

class ObjectBytes : public FarBytes {
 public:
  // The client has its own limits of time, and tells what the server said.
  explicit ObjectBytes(std::shared_ptr<io::RemoteFile> object)
      : reader_(std::move(object), kAhead, beat) {}

  std::uint64_t size() const override { return reader_.file().size(); }
  bool jumps() const override { return reader_.file().has_ranges(); }
  std::size_t read_at(std::uint64_t offset, void* out, std::size_t size) override {
    if (jumps() && offset >= this->size()) return 0;
    if (offset != reader_.position()) reader_.seek(offset);
    return reader_.read_some(out, size);
  }

 private:
  static constexpr std::size_t kAhead = std::size_t{16} << 20;
  io::RemoteReader reader_;
};

struct FarAsk {
  std::uint64_t offset = 0, size = 0;
};
/// The text after it is the bytes, or the message of an error.
struct FarAnswer {
  std::uint8_t failed = 0;
  Cause cause = Cause::other;
};

/// The object of a child process.
struct Channel {
  share::Descriptor end;
  FarFacts facts;
};
std::optional<Channel> g_channel;

/// A child has one source, which it may open several times.
class ParentsBytes : public FarBytes {
 public:
  std::uint64_t size() const override { return g_channel->facts.size; }
  bool jumps() const override { return g_channel->facts.jumps != 0; }
  std::size_t read_at(std::uint64_t offset, void* out, std::size_t size) override {
    const FarAsk ask{offset, size};
    FarAnswer answer;
    const int channel = g_channel->end.get();
    if (!share::send_message(channel, &ask, sizeof ask, {}) ||
        !share::receive_message(channel, &answer, sizeof answer, text_, none_))
      fail("the process that reads an object for its decoder is gone");
    if (answer.failed) throw Error(text_, share::checked_cause(answer.cause, Cause::other));
    const std::size_t got = std::min(size, text_.size());
    std::memcpy(out, text_.data(), got);
    return got;
  }

 private:
  std::string text_;
  std::vector<share::Descriptor> none_;
};

std::mutex g_objects_mutex;
std::map<std::string, std::weak_ptr<io::RemoteFile>> g_objects;
constexpr std::size_t kFew = 1024;
std::size_t g_many = kFew;  // At this number, objects that nobody has any more are forgotten.

}  // namespace

std::shared_ptr<io::RemoteFile> open_far_source(const std::string& address) {
  const auto known = [&]() -> std::shared_ptr<io::RemoteFile> {
    const auto found = g_objects.find(address);
    return found == g_objects.end() ? nullptr : found->second.lock();
  };
  {
    const std::lock_guard lock(g_objects_mutex);
    if (auto object = known()) return object;
  }
  std::shared_ptr<io::RemoteFile> object = io::RemoteFile::open(address);
  const std::lock_guard lock(g_objects_mutex);
  if (auto other = known()) return other;
  if (g_objects.size() >= g_many) {
    std::erase_if(g_objects, [](const auto& each) { return each.second.expired(); });
    g_many = std::max(kFew, 2 * g_objects.size());
  }
  g_objects[address] = object;
  return object;
}

std::unique_ptr<FarBytes> FarBytes::open(const std::string& address) {
  if (g_channel) return std::make_unique<ParentsBytes>();
  return std::make_unique<ObjectBytes>(open_far_source(address));
}

void read_far_through(share::Descriptor channel, const FarFacts& facts) {
  g_channel.emplace(Channel{std::move(channel), facts});
}

FarServer::FarServer(const std::string& address)
    : bytes_(FarBytes::open(address)),
      facts_{bytes_->size(), static_cast<std::uint8_t>(bytes_->jumps())} {
  std::tie(ours_, theirs_) = share::make_channel("a process that decodes");
  thread_ = std::thread([this] { serve(); });
}

FarServer::~FarServer() {
  ends_ = true;
  ::shutdown(ours_.get(), SHUT_RDWR);
  thread_.join();
}

void FarServer::serve() {
  stop_thread_by(&ends_);
  beat_into(&beats_);
  FarAsk ask;
  std::string text;
  std::vector<share::Descriptor> none;
  while (share::receive_message(ours_.get(), &ask, sizeof ask, text, none)) {
    FarAnswer answer;
    try {
      text.resize(std::min<std::uint64_t>(ask.size, share::kMostMessageText));
      text.resize(bytes_->read_at(ask.offset, text.data(), text.size()));
    } catch (const Error& error) {
      answer = {1, error.cause()};
      text = error.what();
    } catch (const Stopped&) {
      break;
    }
    if (!share::send_message(ours_.get(), &answer, sizeof answer, text)) break;
  }
  ::shutdown(ours_.get(), SHUT_RDWR);
}

}  // namespace vfm::media
