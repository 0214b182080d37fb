// SPDX-License-Identifier: Apache-2.0
#include "io/remote/left_writes.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <set>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "io/process_name.h"

namespace vfm::io {

ClaimTimes g_claim_times;

namespace {

constexpr const char* kClaim = ".vfm-upload-";
constexpr const char* kProbe = ".vfm-probe-";
constexpr double kForeign = 24 * 3600;  // seconds until an upload without a claim is ended
constexpr std::uint64_t kMostSign = std::uint64_t{1} << 20;

double sign_patience() {
  return g_claim_times.patience + net_seconds();
}

Json sign_of_process() {
  const ProcessName self = ProcessName::self();
  return {{"host", self.host},
          {"pid", self.pid},
          {"machine", self.machine},
          {"patience", sign_patience()}};
}

/// What an object of a process says.
struct Sign {
  std::string object;   // its key
  std::string key, id;  // of an upload, or empty
  enum class State { alive, unknown, gone } state = State::unknown;
};

}  // namespace

struct UploadClaim::Held {
  Held(S3Client& of, std::string name, std::string of_key)
      : client(of), object(std::move(name)), key(std::move(of_key)) {}

  S3Client& client;
  const std::string object, key;
  std::mutex mutex;  // guards what follows, and the writes of the object
  std::string id;
  bool ended = false;  // The object is removed, or left for the next program.

  void write() {
    Json sign = sign_of_process();
    sign["key"] = key;
    if (!id.empty()) sign["id"] = id;
    client.write(object, dump_json(sign) + "\n");
  }
};

namespace {

/// The claims and folders of this process, and the thread that renews the claims.
class ClaimKeeper {
 public:
  using Clock = std::chrono::steady_clock;
  using Folder = std::pair<S3Client*, std::string>;  // a client lives as long as the process

  static ClaimKeeper& get() {
    static ClaimKeeper& keeper = *new ClaimKeeper;  // used until the process ends
    return keeper;
  }

  void add_folder(const Folder& folder) {
    const std::lock_guard lock(mutex_);
    folders_.insert(folder);
  }
  bool has_folder(const Folder& folder) {
    const std::lock_guard lock(mutex_);
    return folders_.contains(folder);
  }
  /// Returns the outermost folder of the program in which a key lies, or the folder of the key.
  std::string folder_of(const S3Client* client, const std::string& key) {
    const std::lock_guard lock(mutex_);
    // The prefixes of one key are in order of their lengths.
    for (const auto& [of, prefix] : folders_)
      if (of == client && key.starts_with(prefix)) return prefix;
    return key.substr(0, key.rfind('/') + 1);
  }

  void add(const std::shared_ptr<UploadClaim::Held>& claim) {
    const std::lock_guard lock(mutex_);
    claims_.push_back(claim);
    start();
  }
  void remove(const std::shared_ptr<UploadClaim::Held>& claim) {
    const std::lock_guard lock(mutex_);
    std::erase(claims_, claim);
  }
  bool holds(const std::string& object) {
    const std::lock_guard lock(mutex_);
    return std::any_of(claims_.begin(), claims_.end(),
                       [&](const auto& claim) { return claim->object == object; });
  }
  /// Looks at a folder again when all that is there now and is not renewed counts as gone.
  void look_again(const Folder& folder) {
    const std::lock_guard lock(mutex_);
    const auto seconds = std::chrono::duration<double>(sign_patience() + 1);
    again_.emplace_back(Clock::now() + std::chrono::duration_cast<Clock::duration>(seconds),
                        folder);
    start();
  }

 private:
  void start() {
    woken_ = true;
    changed_.notify_all();
    if (thread_.joinable()) return;
    process_ = ::getpid();
    thread_ = std::thread([this] { run(); });
    // The libraries that the thread uses end with the process, after this.
    std::atexit([] { get().join(); });
  }
  void join() {
    if (process_ != ::getpid()) return;  // a fork(), which has no such thread
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  void run() {
    const CancelledBy end(ends_);
    std::unique_lock lock(mutex_);
    Clock::time_point last = Clock::now();
    for (;;) {
      if (claims_.empty() && again_.empty()) {
        changed_.wait(lock, [&] { return ends_ || !claims_.empty() || !again_.empty(); });
        last = Clock::now();
      }
      const auto beat = std::chrono::duration_cast<Clock::duration>(
          std::chrono::duration<double>(g_claim_times.beat));
      changed_.wait_until(lock, last + beat, [&] { return ends_ || std::exchange(woken_, false); });
      if (ends_) return;
      if (Clock::now() < last + beat) continue;
      last = Clock::now();
      const auto claims = claims_;
      std::vector<Folder> due;
      std::erase_if(again_, [&](const auto& each) {
        if (each.first > last) return false;
        due.push_back(each.second);
        return true;
      });
      lock.unlock();
      for (const auto& claim : claims)
        renew(*claim);
      for (const Folder& folder : due)
        look(folder);
      lock.lock();
    }
  }
  static void renew(UploadClaim::Held& claim) {
    const std::lock_guard lock(claim.mutex);
    if (claim.ended) return;
    try {
      claim.write();
    } catch (const Error& error) {
      log_info("{}; it is tried again", error.what());
    } catch (const Stopped&) {
    }
  }
  static void look(const Folder& folder) {
    try {
      if (const int ended = end_left_writes(*folder.first, folder.second, false); ended > 0)
        log_info("ended {} uploads that killed programs left", ended);
    } catch (const Error& error) {
      log_info("{}", error.what());
    } catch (const Stopped&) {
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<Folder> folders_;
  std::vector<std::shared_ptr<UploadClaim::Held>> claims_;
  std::vector<std::pair<Clock::time_point, Folder>> again_;
  std::atomic<bool> ends_{false};
  bool woken_ = false;
  pid_t process_ = 0;
  std::thread thread_;
};

/// An object whose process must be judged, as a list tells of it.
struct ListedSign {
  std::string object;
  double age = -1;    // seconds since it was written, or less than 0 if the store does not tell
  bool near = false;  // of this machine
};

std::vector<ListedSign> list_signs(S3Client& client, const std::string& begin, std::size_t folder) {
  const std::string machine = ProcessName::self().machine.substr(0, 8);
  std::vector<ListedSign> signs;
  const double now = client.list_beginning(begin, [&](const ListedObject& object) {
    const std::string key = begin + object.name;
    const std::string_view name = std::string_view(key).substr(folder);
    if (!name.starts_with(kClaim) && !name.starts_with(kProbe)) return;
    // The name of the writer has its machine.
    const bool near = !machine.empty() && name.find("-" + machine + "-") != name.npos;
    signs.push_back({key, object.modified, near});
  });
  for (ListedSign& sign : signs)
    sign.age = now > 0 && sign.age > 0 ? now - sign.age : -1;
  return signs;
}

Sign::State state_of(const ListedSign& listed, const ProcessName& process, double patience) {
  const ProcessName self = ProcessName::self();
  if (ClaimKeeper::get().holds(listed.object)) return Sign::State::alive;
  if (process.is_gone() || listed.age > patience) return Sign::State::gone;
  if (process.machine != self.machine || self.machine.empty()) return Sign::State::unknown;
  // An earlier process may have had the number of this one, as in a container.
  return process.pid == self.pid ? Sign::State::gone : Sign::State::alive;
}

/// Returns nullopt if the object has gone.
std::optional<Sign> read_sign(S3Client& client, const ListedSign& listed) {
  const std::optional<WholeObject> there = client.read(listed.object, kMostSign);
  if (!there) return std::nullopt;
  Sign sign;
  sign.object = listed.object;
  try {
    const std::string what = "'" + client.address(listed.object) + "'";
    const Json json = parse_json(there->contents, what);
    sign.key = get_string(json, "key").value_or("");
    sign.id = get_string(json, "id").value_or("");
    const ProcessName process{need_string(json, "host", what),
                              static_cast<long>(need_integer(json, "pid", what)),
                              need_string(json, "machine", what)};
    sign.state = state_of(listed, process, need_number(json, "patience", what));
  } catch (const Error& error) {  // of another program
    log_info("{}", error.what());
    if (listed.age > kForeign) sign.state = Sign::State::gone;
  }
  return sign;
}

/// Reads the signs, unless none of them can be of a process that is gone: many processes may begin
/// at the same time, and each has one.
std::vector<Sign> read_signs(S3Client& client, const std::vector<ListedSign>& listed, bool needed,
                             bool& unknown) {
  const double patience = sign_patience();
  const auto may_be_gone = [&](const ListedSign& each) { return each.near || each.age > patience; };
  std::vector<Sign> signs;
  unknown = !listed.empty();
  if (!needed && std::none_of(listed.begin(), listed.end(), may_be_gone)) return signs;
  unknown = false;
  for (const ListedSign& each : listed)
    if (auto sign = read_sign(client, each)) {
      unknown = unknown || sign->state == Sign::State::unknown;
      signs.push_back(*std::move(sign));
    }
  return signs;
}

/// Whether an upload is to be ended, by the signs of its key and its age.
bool is_left(const OpenUpload& upload, const std::vector<Sign>& signs) {
  bool left = upload.age > kForeign;
  for (const Sign& sign : signs) {
    if (sign.key != upload.key || (!sign.id.empty() && sign.id != upload.id)) continue;
    if (sign.state != Sign::State::gone) return false;
    left = true;
  }
  return left;
}

}  // namespace

UploadClaim::UploadClaim(S3Client& client, const std::string& key)
    : held_(std::make_shared<Held>(
          client, ClaimKeeper::get().folder_of(&client, key) + kClaim + S3Client::writer_name(),
          key)) {
  ClaimKeeper::get().add(held_);
  try {
    const std::lock_guard lock(held_->mutex);
    held_->write();
  } catch (...) {
    ClaimKeeper::get().remove(held_);
    throw;
  }
}

UploadClaim::~UploadClaim() {
  ClaimKeeper::get().remove(held_);
  const std::lock_guard lock(held_->mutex);
  if (std::exchange(held_->ended, true)) return;
  try {
    held_->client.remove_at_end(held_->object);
  } catch (const Error& error) {
    log_info("{}; the next program removes it", error.what());
  } catch (const Stopped&) {
  }
}

void UploadClaim::end_upload() {
  const std::lock_guard lock(held_->mutex);
  try {
    held_->client.end_upload(held_->key, held_->id);
  } catch (const Error& error) {
    log_info("{}; the next program ends it", error.what());
    held_->ended = true;
  } catch (const Stopped&) {
    held_->ended = true;
  }
}

void UploadClaim::set_id(const std::string& id) {
  const std::lock_guard lock(held_->mutex);
  held_->id = id;
}

std::string sign_of_life(int number) {
  Json sign = sign_of_process();
  sign["number"] = number;
  return dump_json(sign) + "\n";
}

int end_left_writes(S3Client& client, const std::string& prefix, bool again) {
  ClaimKeeper::get().add_folder({&client, prefix});
  // A claim is there before its upload, so uploads are listed first.
  const std::vector<OpenUpload> uploads = client.uploads(prefix);
  const bool old = std::any_of(uploads.begin(), uploads.end(),
                               [](const OpenUpload& each) { return each.age > kForeign; });
  bool unknown = false;
  const std::vector<Sign> signs =
      read_signs(client, list_signs(client, prefix + ".vfm-", prefix.size()), old, unknown);
  int ended = 0;
  for (const OpenUpload& upload : uploads)
    if (is_left(upload, signs)) {
      client.end_upload(upload.key, upload.id);
      ++ended;
    }
  for (const Sign& sign : signs)
    if (sign.state == Sign::State::gone) client.remove_at_end(sign.object);
  if (unknown && again) ClaimKeeper::get().look_again({&client, prefix});
  return ended;
}

void remove_left_probes(S3Client& client, const std::string& prefix) {
  if (ClaimKeeper::get().has_folder({&client, prefix})) return;  // end_left_writes() did it
  try {
    bool unknown = false;
    const auto listed = list_signs(client, prefix + kProbe, prefix.size());
    for (const Sign& sign : read_signs(client, listed, false, unknown))
      if (sign.state == Sign::State::gone) client.remove_at_end(sign.object);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::usage) throw;
    log_info("{}", error.what());
  }
}

}  // namespace vfm::io
