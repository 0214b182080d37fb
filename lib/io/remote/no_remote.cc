// Bodies for a build without libcurl or OpenSSL: every address is refused.
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "base/shown_name.h"
#include "io/remote/address.h"
#include "io/remote/bucket_store.h"
#include "io/remote/remote_file.h"
#include "io/remote/s3_client.h"
#include "io/remote/upload.h"

namespace vfm::io {
namespace {

[[noreturn]] void refuse_remote(const std::string& address) {
  fail_usage(
      "'{}' cannot be read or written: this build has no libcurl or no OpenSSL; build it "
      "with -Dcurl=enabled",
      shown_name(address));
}
[[noreturn]] void refuse_remote() {
  refuse_remote("s3://");
}

}  // namespace

bool is_bucket(std::string_view path) {
  return path.starts_with("s3://") || path.starts_with("msc://");
}
bool is_remote(std::string_view path) {
  return is_bucket(path) || path.starts_with("http://") || path.starts_with("https://");
}
ObjectAddress address_of(const std::string& path) {
  refuse_remote(path);
}

std::shared_ptr<RemoteFile> RemoteFile::open(const std::string& address) {
  refuse_remote(address);
}
std::shared_ptr<RemoteFile> RemoteFile::open_if_there(const std::string& address) {
  refuse_remote(address);
}
struct RemoteReader::State {};
void limit_read_seconds(double) {}

RemoteReader::RemoteReader(std::shared_ptr<RemoteFile>, std::size_t, std::function<void()>) {
  refuse_remote();
}
RemoteReader::~RemoteReader() = default;
RemoteReader::RemoteReader(RemoteReader&&) noexcept = default;
const RemoteFile& RemoteReader::file() const {
  refuse_remote();
}
std::size_t RemoteReader::read_some(void*, std::size_t) {
  refuse_remote();
}
void RemoteReader::seek(std::uint64_t) {}
std::uint64_t RemoteReader::position() const {
  return 0;
}
std::string read_object(const std::string& address, std::uint64_t) {
  refuse_remote(address);
}

struct ObjectUpload::State {};
ObjectUpload::ObjectUpload(const std::string& address, std::size_t) {
  refuse_remote(address);
}
ObjectUpload::~ObjectUpload() = default;
ObjectUpload::ObjectUpload(ObjectUpload&&) noexcept = default;
ObjectUpload& ObjectUpload::operator=(ObjectUpload&&) noexcept = default;
const std::string& ObjectUpload::address() const {
  refuse_remote();
}
void ObjectUpload::write(const void*, std::size_t) {}
std::uint64_t ObjectUpload::bytes_written() const {
  return 0;
}
std::string ObjectUpload::commit() {
  refuse_remote();
}
std::optional<std::string> ObjectUpload::commit_over(const std::string&) {
  refuse_remote();
}
bool ObjectUpload::differs() const {
  refuse_remote();
}
void ObjectUpload::abandon() noexcept {}
void write_object(const std::string& address, std::string_view) {
  refuse_remote(address);
}
int end_left_uploads_below(const std::string& folder) {
  refuse_remote(folder);
}

struct BucketStore::State {};
BucketStore::BucketStore(const std::string& folder) {
  refuse_remote(folder);
}
BucketStore::~BucketStore() = default;
std::string BucketStore::broken_condition() {
  return "";
}
void BucketStore::check_conditions() {}
std::optional<Store::Facts> BucketStore::facts(const std::string& name) const {
  refuse_remote(name);
}
std::optional<Store::Object> BucketStore::read(const std::string& name) const {
  refuse_remote(name);
}
std::string BucketStore::read_range(const std::string& name, std::uint64_t, std::size_t) const {
  refuse_remote(name);
}
std::vector<std::string> BucketStore::list(const std::string& folder) const {
  refuse_remote(folder);
}
void BucketStore::write(const std::string& name, std::string_view) {
  refuse_remote(name);
}
bool BucketStore::create(const std::string& name, std::string_view) {
  refuse_remote(name);
}
bool BucketStore::replace(const std::string& name, std::string_view, const std::string&) {
  refuse_remote(name);
}
bool BucketStore::remove(const std::string& name) {
  refuse_remote(name);
}
void BucketStore::sweep(const std::string& folder) {
  refuse_remote(folder);
}

struct S3Client::State {};
S3Client::S3Client(std::unique_ptr<State> state) : state_(std::move(state)) {}
S3Client::~S3Client() = default;
std::shared_ptr<S3Client> S3Client::of(const ObjectAddress& address) {
  refuse_remote(address.text);
}
std::optional<ObjectFacts> S3Client::head(const std::string& key) {
  refuse_remote(key);
}
void S3Client::list(const std::string& prefix, bool,
                    const std::function<void(const ListedObject&)>&) {
  refuse_remote(prefix);
}
void S3Client::remove(const std::string& key) {
  refuse_remote(key);
}
void S3Client::copy(const std::string& from, const std::string&) {
  refuse_remote(from);
}

}  // namespace vfm::io
