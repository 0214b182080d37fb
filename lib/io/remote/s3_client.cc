// SPDX-License-Identifier: Apache-2.0
#include "io/remote/s3_client.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <mutex>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/stop.h"
#include "io/process_name.h"
#include "io/remote/left_writes.h"
#include "io/remote/msc.h"
#include "io/remote/msc_manifest.h"
#include "io/remote/remote_object.h"
#include "io/remote/retry.h"
#include "io/remote/signature.h"

namespace vfm::io {
namespace {

constexpr std::uint64_t kMostCopied = std::uint64_t{5} << 30;  // by one request
constexpr std::uint64_t kCopiedPart = std::uint64_t{1} << 30;
constexpr std::uint64_t kMostManifestIndex = std::uint64_t{64} << 20;
constexpr std::size_t kLongestLine = std::size_t{1} << 20;
constexpr const char* kHashHeader = "x-amz-meta-vfm-xxh3";
constexpr const char* kWriterHeader = "x-amz-meta-vfm-writer";

std::uint64_t header_number(const WebAnswer& answer, const std::string& name,
                            const std::string& address) {
  const std::string& text = answer.header(name);
  std::uint64_t value = 0;
  const auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || bad != std::errc() || end != text.data() + text.size())
    fail_as(Cause::answer, "cannot read '{}': the server does not tell its size", address);
  return value;
}

std::string crc_base64(std::uint32_t crc) {
  const std::array<char, 4> bytes{static_cast<char>(crc >> 24), static_cast<char>(crc >> 16),
                                  static_cast<char>(crc >> 8), static_cast<char>(crc)};
  return base64({bytes.data(), bytes.size()});
}

std::string quoted(const std::string& version) {
  return "\"" + version + "\"";
}

std::string xml_escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

ObjectFacts facts_of_answer(const WebAnswer& answer, const std::string& address) {
  return {header_number(answer, "content-length", address), version_of_etag(answer.header("etag")),
          answer.header(kHashHeader), answer.header(kWriterHeader)};
}

void read_remote_lines(RemoteReader& bytes, const std::function<void(const std::string&)>& each) {
  std::string line, some(std::size_t{64} << 10, '\0');
  for (std::size_t count; (count = bytes.read_some(some.data(), some.size())) > 0;)
    for (std::string_view rest(some.data(), count); !rest.empty();) {
      const std::size_t end = rest.find('\n');
      line += rest.substr(0, end);
      if (line.size() > kLongestLine)
        fail_as(Cause::limit, "'{}' has a line of over 1 MiB", bytes.file().address());
      if (end == rest.npos) break;
      rest.remove_prefix(end + 1);
      each(line);
      line.clear();
    }
  if (!line.empty()) each(line);
}

}  // namespace

struct S3Client::State {
  State(const MscProfile& of, const ObjectAddress& address)
      : profile(address.profile), manifest_path(of.manifest), has_manifest(of.has_manifest) {
    const std::size_t slash = of.base_path.find('/');
    if (slash != of.base_path.npos) base = of.base_path.substr(slash + 1) + "/";
    std::string shown_as;
    if (!profile.empty()) shown_as = "msc://" + profile + "/";
    if (!profile.empty() && of.base_path.empty()) shown_as += address.bucket + "/";
    requester = std::make_shared<S3Requester>(of.place, address.bucket, shown_as, base);
  }

  /// Whether parts of uploads carry a CRC32C. A signature over their SHA-256 guards them already.
  bool parts_have_crc() const { return requester->checksums() && !requester->signs_bodies(); }
  /// Adds the body, signed if need be.
  void put_body(ObjectRequest& request, std::string_view body) const {
    request.body = body;
    if (requester->signs_bodies()) request.body_hash = sha256_hex(body);
  }
  /// Adds the body and what lets the server check it. Returns its CRC32C, or "".
  std::string guard(ObjectRequest& request, std::string_view body) const {
    put_body(request, body);
    if (!requester->checksums()) {
      request.headers["content-md5"] = md5_base64(body);
      return "";
    }
    std::string text = crc_base64(crc32c(0, body.data(), body.size()));
    request.headers["x-amz-checksum-crc32c"] = text;
    return text;
  }
  static void add(ObjectRequest& request, const WriteCondition& condition) {
    if (condition.absent) request.headers["if-none-match"] = "*";
    if (!condition.version.empty()) request.headers["if-match"] = quoted(condition.version);
    request.retry_conflict = condition.absent || !condition.version.empty();
  }

  std::string address(const std::string& key) const { return requester->shown(key); }
  std::optional<ObjectFacts> head(const std::string& key) const;
  /// Returns the version of an object that `writer` wrote, though the last answer does not say so.
  /// Asks once.
  std::optional<std::string> written_after_all(const ObjectAnswer& answer, const std::string& key,
                                               const std::string& writer) const;
  /// Returns the store's time, or 0.
  double list(const std::string& prefix, bool all,
              const std::function<void(const ListedObject&)>& each) const;
  void remove(const std::string& key, bool at_end) const;
  /// Returns the manifest of the MSC profile, which is read at the first call, or null.
  const MscManifest* manifest();
  /// Returns the key of the object that a key stands for.
  std::string physical(const std::string& key) {
    const MscManifest* const names = manifest();
    return names ? names->physical(key).value_or(key) : key;
  }
  /// What a manifest lists is not changed by others than those who write manifests.
  void check_writable() const {
    if (has_manifest)
      fail_usage(
          "'msc://{}' has a manifest, so it is only read; write to a profile without "
          "metadata_provider, or to s3://{}",
          profile, requester->bucket());
  }

  mutable std::atomic<bool> has_bucket{false};  // an object was absent, and the bucket was there
  std::shared_ptr<S3Requester> requester;
  std::string profile, base, manifest_path;
  bool has_manifest = false;

 private:
  std::mutex mutex_;
  std::optional<MscManifest> manifest_;
};

std::optional<ObjectFacts> S3Client::State::head(const std::string& key) const {
  ObjectRequest request;
  request.method = "HEAD";
  request.key = key;
  const ObjectAnswer answer = requester->send(request);
  if (answer.succeeded()) return facts_of_answer(answer, address(key));
  if (answer.status == 404 && has_bucket) return std::nullopt;
  if (!answer.fault.empty() || may_succeed_later(answer.status))
    fail_read("open", address(key), answer);
  // An answer to HEAD has no body that tells the reason.
  request.method = "GET";
  request.headers["range"] = "bytes=0-0";
  const ObjectAnswer reason = requester->send(request);
  const bool no_bucket = reason.error.code == "NoSuchBucket";
  if (answer.status == 404 && !no_bucket) {
    has_bucket = true;
    return std::nullopt;
  }
  fail_read("open", address(key), reason.succeeded() ? answer : reason);
}

std::optional<std::string> S3Client::State::written_after_all(const ObjectAnswer& answer,
                                                              const std::string& key,
                                                              const std::string& writer) const {
  const bool may_be = answer.fault.empty() ? may_succeed_later(answer.status) : !answer.hopeless;
  if (!may_be) return std::nullopt;
  ObjectRequest request;
  request.method = "HEAD";
  request.key = key;
  request.once = true;
  const ObjectAnswer there = requester->send(request);
  if (!there.succeeded() || there.header(kWriterHeader) != writer) return std::nullopt;
  return version_of_etag(there.header("etag"));
}

double S3Client::State::list(const std::string& prefix, bool all,
                             const std::function<void(const ListedObject&)>& each) const {
  ObjectRequest request;
  request.query = {{"list-type", "2"}, {"encoding-type", "url"}, {"prefix", prefix}};
  if (!all) request.query["delimiter"] = "/";
  for (;;) {
    const ObjectAnswer answer = requester->send(request);
    if (!answer.succeeded()) fail_read("list", address(prefix), answer);
    ListPage page = read_list_page(answer.body);
    for (ListPage::Entry& entry : page.entries) {
      // Consoles make folders as empty objects that end in a slash.
      const bool folder = entry.key.ends_with('/');
      if (!entry.key.starts_with(prefix) || entry.key.size() == prefix.size() || (all && folder))
        continue;
      each(
          {entry.key.substr(prefix.size()), entry.bytes, std::move(entry.version), entry.modified});
    }
    if (!page.more) return parse_answer_time(answer.header("date"));
    if (request.query["continuation-token"] == page.next)
      fail_as(Cause::answer, "cannot list '{}': the server gives the same page again",
              address(prefix));
    request.query["continuation-token"] = page.next;
  }
}

const MscManifest* S3Client::State::manifest() {
  if (!has_manifest) return nullptr;
  const std::lock_guard lock(mutex_);
  if (manifest_) return &*manifest_;
  MscManifest::Reader reader;
  reader.folders = [&](const std::string& prefix) {
    std::vector<std::string> names;
    list(prefix, false, [&](const ListedObject& object) {
      if (object.name.ends_with('/')) names.push_back(object.name);
    });
    return names;
  };
  reader.exists = [&](const std::string& key) { return head(key).has_value(); };
  reader.read = [&](const std::string& key) {
    const auto object = requester->read(key, address(key), kMostManifestIndex);
    if (!object) fail_as(Cause::open, "cannot open '{}': no such object", address(key));
    return object->contents;
  };
  reader.read_lines = [&](const std::string& key, const auto& each) {
    const std::optional<ObjectFacts> facts = head(key);
    if (!facts) fail_as(Cause::open, "cannot open '{}': no such object", address(key));
    RemoteReader bytes(std::make_shared<RemoteObject>(
        RemoteObject::Facts{address(key), key, facts->version, "", facts->bytes, true}, requester));
    read_remote_lines(bytes, each);
  };
  manifest_.emplace(reader, base, manifest_path);
  return &*manifest_;
}

S3Client::S3Client(std::unique_ptr<State> state) : state_(std::move(state)) {}
S3Client::~S3Client() = default;

std::shared_ptr<S3Client> S3Client::of(const ObjectAddress& address) {
  if (address.kind != ObjectAddress::Kind::s3)
    fail_usage("'{}' is not in a bucket: only s3:// and msc:// can be listed and written",
               address.text);
  static std::mutex& mutex = *new std::mutex;  // used until the process ends
  static auto& clients =
      *new std::map<std::pair<std::string, std::string>, std::shared_ptr<S3Client>>;
  const std::lock_guard lock(mutex);
  std::shared_ptr<S3Client>& client = clients[{address.profile, address.bucket}];
  if (!client) {
    const MscProfile profile = address.profile.empty()
                                   ? MscProfile{"", place_by_environment(), "", false}
                                   : msc_profile(address.profile);
    client.reset(new S3Client(std::make_unique<State>(profile, address)));
  }
  return client;
}

std::string S3Client::address(const std::string& key) const {
  return state_->address(key);
}

std::string S3Client::physical(const std::string& key) const {
  return state_->physical(key);
}

std::string S3Client::name() const {
  return state_->requester->name();
}

std::shared_ptr<Requester> S3Client::requester() const {
  return state_->requester;
}

std::optional<ObjectFacts> S3Client::head(const std::string& key) {
  return state_->head(state_->physical(key));
}

void S3Client::list(const std::string& prefix, bool all,
                    const std::function<void(const ListedObject&)>& each) {
  if (const MscManifest* const manifest = state_->manifest())
    return manifest->list(prefix, all, each);
  state_->list(prefix, all, each);
}

double S3Client::list_beginning(const std::string& begin,
                                const std::function<void(const ListedObject&)>& each) {
  return state_->list(begin, false, [&](const ListedObject& object) {
    if (!object.name.ends_with('/')) each(object);
  });
}

void S3Client::State::remove(const std::string& key, bool at_end) const {
  check_writable();
  ObjectRequest request;
  request.method = "DELETE";
  request.key = key;
  request.once = at_end && stop_requested();
  const ObjectAnswer answer = requester->send(request);
  if (!answer.succeeded() && answer.status != 404) fail_write("remove", address(key), answer);
}

void S3Client::remove(const std::string& key) {
  state_->remove(key, false);
}

void S3Client::remove_at_end(const std::string& key) {
  state_->remove(key, true);
}

void S3Client::copy(const std::string& from, const std::string& to) {
  state_->check_writable();
  const std::optional<ObjectFacts> facts = head(from);
  if (!facts) fail_as(Cause::open, "cannot copy '{}': no such object", address(from));
  ObjectRequest request;
  request.method = "PUT";
  request.key = to;
  request.long_work = true;
  request.headers["x-amz-copy-source"] =
      "/" + state_->requester->bucket() + "/" + percent_encode(from, true);
  if (!facts->version.empty())
    request.headers["x-amz-copy-source-if-match"] = quoted(facts->version);
  if (facts->bytes <= kMostCopied) {
    const ObjectAnswer answer = state_->requester->send(request);
    if (!answer.succeeded()) fail_write("copy", address(from), answer);
    return;
  }
  copy_in_parts(std::move(request), *facts, to);
}

void S3Client::copy_in_parts(ObjectRequest request, const ObjectFacts& facts,
                             const std::string& to) {
  UploadClaim claim(*this, to);
  const std::string writer = writer_name(), id = begin_upload(to, writer);
  claim.set_id(id);
  std::vector<UploadedPart> parts;
  request.query["uploadId"] = id;
  try {
    for (std::uint64_t begin = 0; begin < facts.bytes; begin += kCopiedPart) {
      request.query["partNumber"] = std::to_string(parts.size() + 1);
      request.headers["x-amz-copy-source-range"] =
          fmt::format("bytes={}-{}", begin, std::min(begin + kCopiedPart, facts.bytes) - 1);
      const ObjectAnswer answer = state_->requester->send(request);
      if (!answer.succeeded()) fail_write("copy to", address(to), answer);
      parts.push_back({version_of_etag(answer_element(answer.body, "ETag")),
                       answer_element(answer.body, "ChecksumCRC32C")});
    }
    complete_upload(to, id, writer, parts, {});
  } catch (...) {
    claim.end_upload();
    throw;
  }
}

std::optional<WholeObject> S3Client::read(const std::string& key, std::uint64_t most) {
  return state_->requester->read(state_->physical(key), address(key), most);
}

std::string S3Client::read_range(const std::string& key, std::uint64_t offset, std::size_t size) {
  if (size == 0) return "";
  ObjectRequest request;
  request.key = state_->physical(key);
  request.headers["range"] = fmt::format("bytes={}-{}", offset, offset + size - 1);
  request.most_bytes = size;
  ObjectAnswer answer = state_->requester->send(request);
  if (answer.status == 416) return "";
  if (!answer.succeeded()) fail_read("open", address(key), answer);
  if (answer.status != 206 && offset > 0)
    fail_as(Cause::answer, "cannot read '{}': the server does not answer requests for ranges",
            address(key));
  return std::move(answer.body);
}

std::optional<std::string> S3Client::write(const std::string& key, std::string_view contents,
                                           const WriteCondition& condition) {
  state_->check_writable();
  ObjectRequest request;
  request.method = "PUT";
  request.key = key;
  state_->guard(request, contents);
  const std::string writer = writer_name();
  request.headers[kHashHeader] = hash_hex(contents);
  request.headers[kWriterHeader] = writer;
  State::add(request, condition);
  const ObjectAnswer answer = state_->requester->send(request);
  if (answer.succeeded()) return version_of_etag(answer.header("etag"));
  const bool gone = answer.status == 404 && !condition.version.empty();
  const bool lost = request.retry_conflict && (answer.status == 412 || gone);
  if (auto version = state_->written_after_all(answer, key, writer)) return version;
  if (!lost && condition.refusal && answer.fault.empty() && !may_succeed_later(answer.status)) {
    *condition.refusal = fmt::format("status {} {}", answer.status, answer.error.code);
    return std::nullopt;
  }
  if (!lost) fail_write("write", address(key), answer);
  // An earlier try, whose answer was lost, may have written it. libcurl makes a try of its own if a
  // kept connection turns out to be closed.
  if (const auto facts = head(key); facts && facts->writer == writer) return facts->version;
  return std::nullopt;
}

std::string S3Client::begin_upload(const std::string& key, const std::string& writer) {
  state_->check_writable();
  ObjectRequest request;
  request.method = "POST";
  request.key = key;
  request.query["uploads"] = "";
  request.headers[kWriterHeader] = writer;
  if (state_->parts_have_crc()) request.headers["x-amz-checksum-algorithm"] = "CRC32C";
  const ObjectAnswer answer = state_->requester->send(request);
  if (!answer.succeeded()) fail_write("write", address(key), answer);
  std::string id = answer_element(answer.body, "UploadId");
  if (id.empty())
    fail_as(Cause::disk, "cannot write '{}': the server began no upload", address(key));
  return id;
}

UploadedPart S3Client::write_part(const std::string& key, const std::string& id, int number,
                                  std::string_view bytes, const std::atomic<bool>* cancelled) {
  ObjectRequest request;
  request.method = "PUT";
  request.key = key;
  request.query = {{"partNumber", std::to_string(number)}, {"uploadId", id}};
  request.cancelled = cancelled;
  std::string crc;
  if (state_->requester->signs_bodies())
    state_->put_body(request, bytes);
  else
    crc = state_->guard(request, bytes);
  const ObjectAnswer answer = state_->requester->send(request);
  if (!answer.succeeded()) fail_write("write", address(key), answer);
  return {version_of_etag(answer.header("etag")), std::move(crc)};
}

std::optional<std::string> S3Client::complete_upload(const std::string& key, const std::string& id,
                                                     const std::string& writer,
                                                     const std::vector<UploadedPart>& parts,
                                                     const WriteCondition& condition) {
  std::string body = "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">";
  for (std::size_t i = 0; i < parts.size(); ++i) {
    body += fmt::format("<Part><PartNumber>{}</PartNumber><ETag>{}</ETag>", i + 1,
                        xml_escaped(quoted(parts[i].version)));
    if (!parts[i].crc.empty())
      body += "<ChecksumCRC32C>" + xml_escaped(parts[i].crc) + "</ChecksumCRC32C>";
    body += "</Part>";
  }
  body += "</CompleteMultipartUpload>";
  ObjectRequest request;
  request.method = "POST";
  request.key = key;
  request.query["uploadId"] = id;
  request.body = body;
  request.long_work = true;
  State::add(request, condition);
  const ObjectAnswer answer = state_->requester->send(request);
  if (answer.succeeded()) {
    const std::string etag = answer_element(answer.body, "ETag");
    if (etag.empty())
      fail_as(Cause::disk, "cannot write '{}': the server's answer does not say that it is there",
              address(key));
    return version_of_etag(etag);
  }
  // An earlier try, whose answer was lost, may have completed it.
  if (answer.status == 404 || answer.status == 412)
    if (const auto facts = head(key); facts && facts->writer == writer) return facts->version;
  const bool gone = answer.error.code == "NoSuchKey" && !condition.version.empty();
  if (request.retry_conflict && (answer.status == 412 || gone)) return std::nullopt;
  if (auto version = state_->written_after_all(answer, key, writer)) return version;
  fail_write("write", address(key), answer);
}

void S3Client::end_upload(const std::string& key, const std::string& id) {
  ObjectRequest request;
  request.method = "DELETE";
  request.key = key;
  request.query["uploadId"] = id;
  request.once = stop_requested();
  const ObjectAnswer answer = state_->requester->send(request);
  if (!answer.succeeded() && answer.status != 404)
    fail_write("end an upload of", address(key), answer);
}

std::vector<OpenUpload> S3Client::uploads(const std::string& prefix) {
  ObjectRequest request;
  request.query = {{"uploads", ""}, {"encoding-type", "url"}, {"prefix", prefix}};
  std::vector<OpenUpload> open;
  for (;;) {
    const ObjectAnswer answer = state_->requester->send(request);
    if (!answer.succeeded()) fail_read("list the uploads of", address(prefix), answer);
    const UploadsPage page = read_uploads_page(answer.body);
    const double now = parse_answer_time(answer.header("date"));
    for (const UploadsPage::Entry& entry : page.entries)
      if (entry.key.starts_with(prefix))
        open.push_back({entry.key, entry.id, entry.began > 0 && now > 0 ? now - entry.began : 0});
    if (!page.more) return open;
    if (request.query["key-marker"] == page.next_key &&
        request.query["upload-id-marker"] == page.next_id)
      return open;
    request.query["key-marker"] = page.next_key;
    request.query["upload-id-marker"] = page.next_id;
  }
}

std::string S3Client::writer_name() {
  static std::atomic<std::uint64_t> written{0};
  static const auto began = std::chrono::system_clock::now().time_since_epoch().count();
  return fmt::format("{}-{:x}-{}", ProcessName::self().name(), began, written.fetch_add(1));
}

}  // namespace vfm::io
