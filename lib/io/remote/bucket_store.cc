// SPDX-License-Identifier: Apache-2.0
#include "io/remote/bucket_store.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "base/error.h"
#include "io/file.h"
#include "io/folder.h"
#include "io/remote/left_writes.h"
#include "io/remote/s3_client.h"

namespace vfm::io {
namespace {

constexpr std::uint64_t kMostStored = std::uint64_t{1} << 30;  // such objects are small

}  // namespace

struct BucketStore::State {
  std::string folder;  // the address
  std::string prefix;  // of keys, with a slash at the end unless empty
  std::shared_ptr<S3Client> client;

  std::string key(const std::string& name) const { return prefix + name; }
};

BucketStore::BucketStore(const std::string& folder) : state_(std::make_unique<State>()) {
  const ObjectAddress where = address_of(folder);
  state_->folder = folder;
  state_->prefix = where.key;
  if (!state_->prefix.empty() && !state_->prefix.ends_with('/')) state_->prefix += '/';
  state_->client = S3Client::of(where);
}
BucketStore::~BucketStore() = default;

/// Returns which promise the store does not keep, or "". `name` is an object for the trial.
static std::string try_conditions(BucketStore& store, S3Client& client, const std::string& key,
                                  const std::string& name) {
  std::string refusal;
  if (!client.write(key, sign_of_life(1), {.absent = true, .refusal = &refusal})) {
    if (refusal.empty()) return "no object can be created";
    // Some stores refuse each write with a condition. Others refuse each write, and say why.
    store.write(name, sign_of_life(1));
    return "it refuses writes with conditions (" + refusal + ")";
  }
  const std::optional<Store::Facts> first = store.facts(name);
  if (store.create(name, sign_of_life(2))) return "a second create of an object succeeds";
  if (first && !store.replace(name, sign_of_life(3), first->version))
    return "an object cannot be replaced by its version";
  if (first && store.replace(name, sign_of_life(4), first->version))
    return "an older version of an object can be replaced";
  return "";
}

std::string BucketStore::broken_condition() {
  static std::mutex& mutex = *new std::mutex;  // used until the process ends
  static auto& known = *new std::map<std::string, std::string>;
  const std::lock_guard lock(mutex);
  const std::string store = state_->client->name();
  if (const auto found = known.find(store); found != known.end()) return found->second;
  remove_left_probes(*state_->client, state_->prefix);
  const std::string name = ".vfm-probe-" + S3Client::writer_name();
  std::string broken = try_conditions(*this, *state_->client, state_->key(name), name);
  remove(name);
  if (!broken.empty())
    broken = fmt::format(
        "'{}' cannot be shared by several programs: {}; use a store that keeps conditional "
        "writes (vfm-storage(7))",
        state_->folder, broken);
  return known.emplace(store, broken).first->second;
}

void BucketStore::check_conditions() {
  if (const std::string broken = broken_condition(); !broken.empty()) fail_usage("{}", broken);
}

std::optional<Store::Facts> BucketStore::facts(const std::string& name) const {
  std::optional<ObjectFacts> found = state_->client->head(state_->key(name));
  if (!found) return std::nullopt;
  return Facts{found->bytes, std::move(found->version)};
}

std::optional<Store::Object> BucketStore::read(const std::string& name) const {
  std::optional<WholeObject> found = state_->client->read(state_->key(name), kMostStored);
  if (!found) return std::nullopt;
  return Object{std::move(found->contents), std::move(found->version)};
}

std::string BucketStore::read_range(const std::string& name, std::uint64_t offset,
                                    std::size_t size) const {
  return state_->client->read_range(state_->key(name), offset, size);
}

std::vector<std::string> BucketStore::list(const std::string& folder) const {
  std::string prefix = state_->key(folder);
  if (!prefix.empty() && !prefix.ends_with('/')) prefix += '/';
  std::vector<std::string> names;
  state_->client->list(prefix, false, [&](const ListedObject& object) {
    if (object.name.front() != '.') names.push_back(object.name);
  });
  std::sort(names.begin(), names.end());
  return names;
}

void BucketStore::write(const std::string& name, std::string_view contents) {
  state_->client->write(state_->key(name), contents);
}

bool BucketStore::create(const std::string& name, std::string_view contents) {
  return state_->client->write(state_->key(name), contents, {.absent = true}).has_value();
}

bool BucketStore::replace(const std::string& name, std::string_view contents,
                          const std::string& version) {
  if (version.empty())
    fail("cannot replace '{}': it has no version", state_->client->address(state_->key(name)));
  return state_->client->write(state_->key(name), contents, {.version = version}).has_value();
}

bool BucketStore::remove(const std::string& name) {
  if (!state_->client->head(state_->key(name))) return false;
  state_->client->remove(state_->key(name));
  return true;
}

void BucketStore::sweep(const std::string& folder) {
  end_left_uploads(join_path(state_->folder, folder));
}

}  // namespace vfm::io
