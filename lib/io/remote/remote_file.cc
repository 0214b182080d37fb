// SPDX-License-Identifier: Apache-2.0
#include "io/remote/remote_file.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <numeric>

#include "base/error.h"
#include "io/at_once.h"
#include "io/remote/address.h"
#include "io/remote/errands.h"
#include "io/remote/remote_object.h"
#include "io/remote/s3_client.h"

namespace vfm::io {
namespace {

constexpr std::uint64_t kPieceBytes = std::uint64_t{8} << 20;    // of a large read, by one request
constexpr std::uint64_t kJoinedBytes = std::uint64_t{16} << 20;  // the most that ranges share
constexpr std::uint64_t kJoinedGap = std::uint64_t{256} << 10;   // read and thrown away
constexpr std::size_t kAtOnce = 16;

std::shared_ptr<Requester> web_requester() {
  static auto& requester = *new std::shared_ptr<Requester>(std::make_shared<WebRequester>());
  return requester;  // used until the process ends
}

/// Reads the number after the slash of "bytes 0-0/100" or "bytes */100".
bool read_total(std::string_view text, std::uint64_t& total) {
  const std::size_t slash = text.find('/');
  if (slash == text.npos) return false;
  const char* const end = text.data() + text.size();
  const auto [at, bad] = std::from_chars(text.data() + slash + 1, end, total);
  return bad == std::errc() && at == end;
}

/// Asks for the first byte, which tells the size and whether there are ranges. Servers that refuse
/// HEAD are not rare.
std::shared_ptr<RemoteObject> open_web(const ObjectAddress& address) {
  WebSink sink;
  sink.begin = [](const WebAnswer& answer) { return answer.status == 206; };
  sink.take = [](std::span<const char>) { return true; };
  ObjectRequest request;
  request.key = address.key;
  request.headers["range"] = "bytes=0-0";
  request.sink = &sink;
  const ObjectAnswer answer = web_requester()->send(request);
  if (answer.status == 404 || answer.status == 410) return nullptr;
  RemoteObject::Facts facts{address.text, address.key, version_of_etag(answer.header("etag")),
                            "",           0,           true};
  bool sized = false;
  if (answer.status == 206 || answer.status == 416) {
    sized = read_total(answer.header("content-range"), facts.bytes);
  } else if (answer.status == 200) {
    const std::string& text = answer.header("content-length");
    facts.ranges = false;
    sized = read_total("/" + text, facts.bytes);
  } else {
    fail_read("open", address.text, answer);
  }
  if (!sized)
    fail_as(Cause::answer, "cannot read '{}': the server does not tell its size", address.text);
  return std::make_shared<RemoteObject>(std::move(facts), web_requester());
}

std::shared_ptr<RemoteObject> open_object(const std::string& address) {
  const ObjectAddress where = address_of(address);
  if (where.kind == ObjectAddress::Kind::http) return open_web(where);
  if (where.key.empty()) fail_as(Cause::open, "cannot open '{}': it is a bucket", address);
  const std::shared_ptr<S3Client> client = S3Client::of(where);
  const std::optional<ObjectFacts> facts = client->head(where.key);
  if (!facts) return nullptr;
  return std::make_shared<RemoteObject>(
      RemoteObject::Facts{address, client->physical(where.key), facts->version, facts->hash,
                          facts->bytes, true},
      client->requester());
}

void check_range(const RemoteFile& file, std::uint64_t offset, std::uint64_t size) {
  if (offset > file.size() || size > file.size() - offset)
    fail("'{}' ends at byte {}, before byte {}", file.address(), file.size(), offset + size);
  if (!file.has_ranges() && size > 0)
    fail_as(Cause::answer,
            "cannot read '{}' at any place: its server does not answer requests for ranges; copy "
            "it to a disk first",
            file.address());
}

/// Ranges that one request brings, by their indices in order of their offsets.
struct JoinedRanges {
  std::vector<std::size_t> indices;
  std::uint64_t begin = 0, end = 0;
};

std::vector<JoinedRanges> join_ranges(std::span<const RemoteFile::Range> ranges) {
  std::vector<std::size_t> order(ranges.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](auto a, auto b) { return ranges[a].offset < ranges[b].offset; });
  std::vector<JoinedRanges> joined;
  for (const std::size_t i : order) {
    const std::uint64_t begin = ranges[i].offset, end = begin + ranges[i].out.size();
    const bool near = !joined.empty() && begin >= joined.back().end &&
                      begin - joined.back().end <= kJoinedGap &&
                      end - joined.back().begin <= kJoinedBytes;
    if (!near) joined.push_back({{}, begin, end});
    joined.back().indices.push_back(i);
    joined.back().end = end;
  }
  return joined;
}

/// Puts bytes that come in order where they belong, and drops those between ranges.
class RangeScatter {
 public:
  RangeScatter(std::span<const RemoteFile::Range> ranges, const JoinedRanges& joined)
      : ranges_(ranges), joined_(joined), at_(joined.begin) {}

  void take(std::span<const char> bytes) {
    while (!bytes.empty() && next_ < joined_.indices.size()) {
      const RemoteFile::Range& range = ranges_[joined_.indices[next_]];
      const std::uint64_t end = range.offset + range.out.size();
      std::size_t count = bytes.size();
      if (at_ < range.offset) {
        count = static_cast<std::size_t>(std::min<std::uint64_t>(count, range.offset - at_));
      } else {
        count = static_cast<std::size_t>(std::min<std::uint64_t>(count, end - at_));
        std::memcpy(range.out.data() + (at_ - range.offset), bytes.data(), count);
      }
      at_ += count;
      bytes = bytes.subspan(count);
      while (next_ < joined_.indices.size() && is_full(joined_.indices[next_]))
        ++next_;
    }
  }

 private:
  bool is_full(std::size_t i) const { return at_ >= ranges_[i].offset + ranges_[i].out.size(); }

  std::span<const RemoteFile::Range> ranges_;
  const JoinedRanges& joined_;
  std::uint64_t at_;
  std::size_t next_ = 0;
};

}  // namespace

std::shared_ptr<RemoteFile> RemoteFile::open(const std::string& address) {
  std::shared_ptr<RemoteFile> file = open_if_there(address);
  if (!file) fail_as(Cause::open, "cannot open '{}': no such object", address);
  return file;
}

std::shared_ptr<RemoteFile> RemoteFile::open_if_there(const std::string& address) {
  if (std::shared_ptr<RemoteFile> kept = KeptObjects::find(address)) return kept;
  std::shared_ptr<RemoteObject> object = open_object(address);
  if (!object) return nullptr;
  object->keep(KeptObjects::room_for(address, object->size()));
  KeptObjects::opened(address, object);
  return object;
}

void RemoteObject::fetch(std::uint64_t offset, std::uint64_t size,
                         const std::function<void(std::span<const char>)>& take,
                         const std::atomic<bool>* cancelled) const {
  requester_->fetch({facts_.key, facts_.address, facts_.version, facts_.bytes, offset, size}, take,
                    cancelled);
}

void RemoteObject::pread_exact(void* out, std::size_t size, std::uint64_t offset) const {
  check_range(*this, offset, size);
  if (kept_ && offset + size <= kept_->count()) {
    kept_->read_some(out, size, offset);
    return;
  }
  const std::uint64_t pieces = (size + kPieceBytes - 1) / kPieceBytes;
  for_each_at_once(static_cast<std::size_t>(pieces), kAtOnce, [&](std::size_t i) {
    const std::uint64_t begin = i * kPieceBytes;
    char* at = static_cast<char*>(out) + begin;
    fetch(offset + begin, std::min<std::uint64_t>(kPieceBytes, size - begin),
          [&](std::span<const char> bytes) {
            std::memcpy(at, bytes.data(), bytes.size());
            at += bytes.size();
          });
  });
  if (kept_) kept_->add({static_cast<const char*>(out), size}, offset);
}

void RemoteObject::pread_all(std::span<const Range> ranges,
                             const std::function<void(std::size_t)>& done) const {
  for (const Range& range : ranges)
    check_range(*this, range.offset, range.out.size());
  const std::vector<JoinedRanges> joined = join_ranges(ranges);
  for_each_at_once(joined.size(), kAtOnce, [&](std::size_t i) {
    const JoinedRanges& some = joined[i];
    if (some.indices.size() == 1) {
      const Range& range = ranges[some.indices[0]];
      pread_exact(range.out.data(), range.out.size(), range.offset);
    } else {
      RangeScatter scatter(ranges, some);
      fetch(some.begin, some.end - some.begin,
            [&](std::span<const char> bytes) { scatter.take(bytes); });
    }
    for (const std::size_t index : some.indices)
      if (done) done(index);
  });
}

std::string read_object(const std::string& address, std::uint64_t most) {
  const ObjectAddress where = address_of(address);
  if (where.key.empty()) fail_as(Cause::open, "cannot open '{}': it is a bucket", address);
  std::optional<WholeObject> object = where.kind == ObjectAddress::Kind::http
                                          ? web_requester()->read(where.key, address, most)
                                          : S3Client::of(where)->read(where.key, most);
  if (!object) fail_as(Cause::open, "cannot open '{}': no such object", address);
  return std::move(object->contents);
}

}  // namespace vfm::io
