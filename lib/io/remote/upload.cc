// SPDX-License-Identifier: Apache-2.0
#include "io/remote/upload.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "io/at_once.h"
#include "io/remote/errands.h"
#include "io/remote/left_writes.h"
#include "io/remote/s3_client.h"

namespace vfm::io {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::size_t kMostParts = 10'000;  // S3's limit

constexpr std::size_t kPartsAtOnce = 8;
constexpr std::size_t kSentDirectly = 64 * kMiB;  // not held, but sent from the caller's memory

/// Parts are equal as long as they can be, as some stores want them so. With the sizes of later
/// parts, an object may have 1.2 TiB.
std::size_t part_bytes(std::size_t index) {
  return (index < 6000 ? 16 : index < 8000 ? 64 : 512) * kMiB;
}

}  // namespace

struct ObjectUpload::State {
  /// Bytes whose request is under way. The request owns them too.
  struct Part {
    std::size_t number = 0;  // from 1 on
    std::string bytes;
    UploadedPart uploaded;
    std::atomic<bool> cancelled{false};
    std::shared_ptr<Errand> errand;
  };

  std::string address, key;
  std::shared_ptr<S3Client> client;
  std::size_t ahead;
  std::string buffer;
  std::uint64_t written = 0;
  bool ended = false;

  std::string id, writer;              // of the multipart upload, or empty
  std::unique_ptr<UploadClaim> claim;  // of the multipart upload
  std::vector<UploadedPart> uploaded;  // by number, and empty for those under way
  std::deque<std::shared_ptr<Part>> under_way;
  std::vector<std::string> free;

  void append(const char* data, std::size_t size);
  void begin();
  std::size_t send_whole_parts(std::string_view bytes);
  void send_buffer();
  void finish_oldest();
  std::optional<std::string> commit(const WriteCondition& condition);
  void abandon();
};

void ObjectUpload::State::append(const char* data, std::size_t size) {
  written += size;
  while (size > 0) {
    const std::size_t most = part_bytes(uploaded.size());
    if (buffer.size() == most) send_buffer();
    std::size_t count = std::min(size, most - buffer.size());
    if (buffer.empty() && size >= kSentDirectly && size > most) {
      count = send_whole_parts({data, size});
    } else {
      // A text that grows step by step would copy a part several times.
      if (buffer.size() + count > kMiB && buffer.capacity() < most) buffer.reserve(most);
      buffer.append(data, count);
    }
    data += count;
    size -= count;
  }
}

void ObjectUpload::State::begin() {
  if (!id.empty()) return;
  writer = S3Client::writer_name();
  claim = std::make_unique<UploadClaim>(*client, key);
  id = client->begin_upload(key, writer);
  claim->set_id(id);
}

/// Sends the whole parts that `bytes` has from the caller's memory, and returns their bytes. One
/// part at least is left, as an upload ends with one.
std::size_t ObjectUpload::State::send_whole_parts(std::string_view bytes) {
  begin();
  const std::size_t first = uploaded.size();
  std::vector<std::string_view> parts;
  std::size_t taken = 0;
  while (first + parts.size() < kMostParts &&
         taken + part_bytes(first + parts.size()) < bytes.size()) {
    parts.push_back(bytes.substr(taken, part_bytes(first + parts.size())));
    taken += parts.back().size();
  }
  if (parts.empty()) fail("'{}' is larger than an object may be (1.2 TiB)", address);
  uploaded.resize(first + parts.size());
  const std::atomic<bool> no{false};
  for_each_at_once(parts.size(), kPartsAtOnce, [&](std::size_t i) {
    uploaded[first + i] =
        client->write_part(key, id, static_cast<int>(first + i) + 1, parts[i], &no);
  });
  return taken;
}

void ObjectUpload::State::send_buffer() {
  if (uploaded.size() == kMostParts)
    fail("'{}' is larger than an object may be (1.2 TiB)", address);
  begin();
  // The part being filled counts too.
  while (!under_way.empty() && (under_way.size() + 2) * buffer.size() > ahead)
    finish_oldest();
  auto part = std::make_shared<Part>();
  part->bytes = std::move(buffer);
  buffer.clear();
  if (!free.empty()) {
    buffer = std::move(free.back());
    free.pop_back();
    buffer.clear();
  }
  uploaded.emplace_back();
  part->number = uploaded.size();
  part->errand = Errand::start([client = client, key = key, id = id, weak = std::weak_ptr(part)] {
    if (const auto kept = weak.lock())
      kept->uploaded = client->write_part(key, id, static_cast<int>(kept->number), kept->bytes,
                                          &kept->cancelled);
  });
  under_way.push_back(std::move(part));
}

void ObjectUpload::State::finish_oldest() {
  const std::shared_ptr<Part> part = under_way.front();
  part->errand->finish();
  uploaded[part->number - 1] = std::move(part->uploaded);
  free.push_back(std::move(part->bytes));
  under_way.pop_front();
}

std::optional<std::string> ObjectUpload::State::commit(const WriteCondition& condition) {
  if (ended) fail("'{}' was written to its end already", address);
  std::optional<std::string> version;
  if (id.empty()) {
    version = client->write(key, buffer, condition);
  } else {
    send_buffer();
    while (!under_way.empty())
      finish_oldest();
    version = client->complete_upload(key, id, writer, uploaded, condition);
  }
  if (!version) abandon();
  ended = true;
  claim.reset();
  return version;
}

void ObjectUpload::State::abandon() {
  if (ended) return;
  ended = true;
  for (const auto& part : under_way)
    part->cancelled = true;
  for (const auto& part : under_way)
    part->errand->drop();
  under_way.clear();
  if (id.empty()) return;
  claim->end_upload();
  claim.reset();
}

ObjectUpload::ObjectUpload(const std::string& address, std::size_t ahead)
    : state_(std::make_unique<State>()) {
  const ObjectAddress where = address_of(address);
  if (where.kind != ObjectAddress::Kind::s3)
    fail_usage("cannot write '{}': only s3:// and msc:// can be written", address);
  if (where.key.empty() || where.key.ends_with('/'))
    fail_usage("cannot write '{}': it names no object", address);
  state_->address = address;
  state_->key = where.key;
  state_->client = S3Client::of(where);
  state_->ahead = ahead;
}
ObjectUpload::~ObjectUpload() {
  abandon();
}
ObjectUpload::ObjectUpload(ObjectUpload&&) noexcept = default;
ObjectUpload& ObjectUpload::operator=(ObjectUpload&& other) noexcept {
  if (this != &other) {
    abandon();
    state_ = std::move(other.state_);
  }
  return *this;
}

const std::string& ObjectUpload::address() const {
  return state_->address;
}
void ObjectUpload::write(const void* data, std::size_t size) {
  state_->append(static_cast<const char*>(data), size);
}
std::uint64_t ObjectUpload::bytes_written() const {
  return state_->written;
}
std::string ObjectUpload::commit() {
  return state_->commit({}).value_or("");
}
std::optional<std::string> ObjectUpload::commit_over(const std::string& version) {
  return state_->commit({.absent = version.empty(), .version = version});
}

bool ObjectUpload::differs() const {
  if (!state_->id.empty()) return true;  // Large objects have no hash.
  const std::optional<ObjectFacts> facts = state_->client->head(state_->key);
  return !facts || facts->bytes != state_->written || facts->hash != hash_hex(state_->buffer);
}

void ObjectUpload::abandon() noexcept {
  if (state_) state_->abandon();
}

void write_object(const std::string& address, std::string_view contents) {
  ObjectUpload upload(address);
  upload.write(contents.data(), contents.size());
  upload.commit();
}

int end_left_uploads_below(const std::string& folder) {
  const ObjectAddress where = address_of(folder);
  std::string prefix = where.key;
  if (!prefix.empty() && !prefix.ends_with('/')) prefix += '/';
  return end_left_writes(*S3Client::of(where), prefix);
}

}  // namespace vfm::io
