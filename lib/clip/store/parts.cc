// SPDX-License-Identifier: Apache-2.0
#include "clip/store/parts.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/full_disk.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/stop.h"
#include "io/packed.h"

namespace vfm::clip {
namespace {

// A record is the length of the payload, a hash of the payload, and the payload.
constexpr std::size_t kLength = 8, kSum = 16, kHead = kLength + kSum;
constexpr char kClip = 's', kEnd = 'e';

std::string sum_of(std::string_view payload) {
  return Hasher().update(payload).hex64();
}

}  // namespace

/// Waits while another program has the file.
void ClipParts::open(bool keep) {
  for (;;) {
    const int flags = O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW;
    const int fd = ::open(path_.c_str(), flags, 0666);
    if (fd < 0) fail_output(errno, "cannot create '{}'", path_);
    file_ = io::File(fd, path_);
    bool other = ::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    struct stat facts {};
    other = other || (::fstat(fd, &facts) == 0 && facts.st_nlink == 0);  // removed by its holder
    if (!other) break;
    check_stop();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  if (!keep && ::ftruncate(file_.fd(), 0) != 0) fail_output(errno, "cannot write '{}'", path_);
}

ClipParts::ClipParts(std::string path, const Json& settings, bool keep) : path_(std::move(path)) {
  open(keep);
  const std::string header = dump_json(Json{{"settings", settings}}) + "\n";
  read_all(header);
  if (::ftruncate(file_.fd(), static_cast<off_t>(size_)) != 0)
    fail_output(errno, "cannot write '{}'", path_);
  if (size_ > 0) return;
  file_.write_all(header.data(), header.size());
  size_ = header.size();
}

/// Reads all records before the first damaged record. Reads nothing if the settings differ.
void ClipParts::read_all(const std::string& header) {
  const std::uint64_t bytes = file_.size();
  if (bytes < header.size()) return;
  std::string begin(header.size(), '\0');
  file_.pread_exact(begin.data(), begin.size(), 0);
  if (begin != header) return;
  size_ = header.size();
  while (size_ + kHead <= bytes) {
    check_stop();
    std::string length(kLength, '\0');
    file_.pread_exact(length.data(), kLength, size_);
    std::string_view rest = length;
    const Place place{size_ + kHead, io::take_ordered(rest, kLength)};
    if (place.size == 0 || place.size > bytes - place.offset) break;
    try {
      const std::string payload = payload_at(place);
      rest = std::string_view(payload).substr(1);
      if (payload[0] == kEnd) {
        const std::string hash(io::take_text(rest));
        Part part{std::string(io::take_text(rest)), {}};
        while (!rest.empty()) {
          const std::uint64_t offset = io::take_number(rest);
          part.clips.push_back({offset, io::take_number(rest)});
        }
        ended_[hash] = std::move(part);
      }
    } catch (const Error& error) {
      log_info("{}", error.what());
      break;
    }
    size_ = place.offset + place.size;
  }
}

std::string ClipParts::payload_at(const Place& place) const {
  std::string sum(kSum, '\0'), payload(place.size, '\0');
  file_.pread_exact(sum.data(), sum.size(), place.offset - kSum);
  file_.pread_exact(payload.data(), payload.size(), place.offset);
  if (sum_of(payload) != sum) fail("'{}' is not as it was written", path_);
  return payload;
}

ClipParts::Place ClipParts::append(std::string_view payload) {
  std::string head;
  io::put_ordered(head, payload.size(), kLength);
  head += sum_of(payload);
  const std::lock_guard lock(mutex_);
  file_.write_all(head.data(), head.size());
  file_.write_all(payload.data(), payload.size());
  const Place place{size_ + kHead, payload.size()};
  size_ = place.offset + place.size;
  return place;
}

ClipParts::Place ClipParts::add(const shard::Sample& sample) {
  std::string payload(1, kClip);
  io::put_text(payload, sample.key);
  for (const shard::Member& member : sample.members) {
    io::put_text(payload, member.extension);
    io::put_text(payload, member.data);
  }
  return append(payload);
}

void ClipParts::end(const std::string& hash, const Json& summary, std::vector<Place> clips) {
  Part part{dump_json(summary), std::move(clips)};
  std::string payload(1, kEnd);
  io::put_text(payload, hash);
  io::put_text(payload, part.summary);
  for (const Place& clip : part.clips) {
    io::put_number(payload, clip.offset);
    io::put_number(payload, clip.size);
  }
  append(payload);
  const std::lock_guard lock(mutex_);
  ended_[hash] = std::move(part);
}

const ClipParts::Part* ClipParts::find(const std::string& hash) const {
  const std::lock_guard lock(mutex_);
  const auto at = ended_.find(hash);
  return at == ended_.end() ? nullptr : &at->second;
}

shard::Sample ClipParts::read(const Place& place) const {
  const std::string payload = payload_at(place);
  std::string_view rest = std::string_view(payload).substr(1);
  shard::Sample sample{std::string(io::take_text(rest)), {}};
  while (!rest.empty()) {
    std::string extension(io::take_text(rest));
    sample.members.push_back({std::move(extension), std::string(io::take_text(rest))});
  }
  return sample;
}

void ClipParts::remove() {
  ::unlink(path_.c_str());
}

}  // namespace vfm::clip
