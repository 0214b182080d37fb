// SPDX-License-Identifier: Apache-2.0
#include "io/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/run_end.h"
#include "base/stop.h"
#include "base/stopwatch.h"
#include "io/folder.h"
#include "io/process_name.h"
#include "io/remote/address.h"
#include "io/remote/bucket_store.h"

namespace vfm::io {

namespace {

constexpr const char* kLockObject = ".vfm-lock";

// Returns true if another program keeps the lock for `lock_patience`. A killed program keeps its
// locks until the system has removed the process, which takes a while on a busy machine.
bool is_taken(int fd) {
  const auto end = std::chrono::steady_clock::now() + lock_patience;
  while (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    // The file system has no locks. The folder is then used without one.
    if (errno != EWOULDBLOCK) return false;
    if (std::chrono::steady_clock::now() >= end) return true;
    check_stop();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return false;
}

[[noreturn]] void fail_in_use(const std::string& folder) {
  fail("'{}' is in use by another program that writes it; wait for it, or choose another folder",
       folder);
}

/// Returns the process that a lock's contents name, or none if another program wrote it.
ProcessName process_of(const std::string& contents) {
  try {
    const Json lock = parse_json(contents, kLockObject);
    return {need_string(lock, "host", kLockObject),
            static_cast<long>(need_integer(lock, "pid", kLockObject)),
            need_string(lock, "machine", kLockObject)};
  } catch (const Error&) {
    return {};  // It is taken over if it does not change.
  }
}

}  // namespace

struct FolderLock::Held {
  Held(std::string name, const LockTimes& lock_times)
      : folder(std::move(name)), times(lock_times), store(folder) {}
  Held(const Held&) = delete;
  ~Held();

  std::string contents() const {
    return dump_json({{"host", self.host},
                      {"pid", self.pid},
                      {"machine", self.machine},
                      {"number", number}}) +
           "\n";
  }
  /// Returns the version of the object, or nullopt if it is not ours.
  std::optional<std::string> own_version() const {
    const std::optional<Store::Object> there = store.read(kLockObject);
    if (!there || there->contents != contents()) return std::nullopt;
    return there->version;
  }
  bool keep(bool written) {
    if (!written) return false;
    const std::optional<std::string> own = own_version();
    version = own.value_or("");
    return own.has_value();
  }
  void take();
  bool beat() {
    ++number;
    return keep(store.replace(kLockObject, contents(), version));
  }
  void beat_until_end();

  const std::string folder;
  const LockTimes times;
  BucketStore store;
  const ProcessName self = ProcessName::self();
  std::uint64_t number = 0;  // Makes each version another one.
  std::string version;
  std::mutex mutex;
  std::condition_variable ended;
  bool ends = false, lost = false;
  std::thread thread;
};

/// Returns when the lock is ours. Throws Error if its holder shows a sign of life.
void FolderLock::Held::take() {
  std::string first;
  Stopwatch unchanged;
  bool told = false;
  for (;; std::this_thread::sleep_for(std::chrono::milliseconds(200))) {
    check_stop();
    if (keep(store.create(kLockObject, contents()))) break;
    const std::optional<Store::Object> there = store.read(kLockObject);
    if (!there) continue;  // Its holder has just ended.
    if (first.empty()) {
      first = there->version;
      unchanged = {};
    } else if (there->version != first) {
      fail_in_use(folder);
    }
    const ProcessName holder = process_of(there->contents);
    const bool dead = unchanged.seconds() >= times.patience || holder.is_gone();
    if (!dead && unchanged.seconds() > times.patience / 20 && !std::exchange(told, true))
      log_warning(
          "'{}' is locked by {}, which may have been killed: waiting {:.0f} s for a sign of it",
          folder,
          holder.host.empty() ? std::string("another program")
                              : fmt::format("process {} of '{}'", holder.pid, holder.host),
          times.patience);
    if (dead && keep(store.replace(kLockObject, contents(), there->version))) break;
  }
  thread = std::thread([this] { beat_until_end(); });
}

void FolderLock::Held::beat_until_end() {
  Stopwatch since_beat;
  for (;;) {
    {
      std::unique_lock lock(mutex);
      if (ended.wait_for(lock, std::chrono::duration<double>(times.beat), [&] { return ends; }))
        return;
    }
    try {
      if (!beat()) break;
      since_beat = {};
    } catch (const Error& error) {
      log_warning("cannot renew the lock of '{}': {}", folder, error.what());
      if (since_beat.seconds() > times.patience) break;
      --number;  // beat() tries the same contents again, which may have been written.
    } catch (const Stopped&) {
      return;
    }
  }
  lost = true;
  end_run(fmt::format(
      "the lock of '{}' is lost: this process could not renew it for too long, and another program "
      "may write there; run the same command again when no other does",
      folder));
}

FolderLock::Held::~Held() {
  {
    const std::lock_guard lock(mutex);
    ends = true;
  }
  ended.notify_all();
  if (thread.joinable()) thread.join();
  if (lost || version.empty()) return;
  try {
    if (own_version()) store.remove(kLockObject);
  } catch (const Error& error) {
    log_warning("cannot remove the lock of '{}': {}", folder, error.what());
  } catch (const Stopped&) {  // The next program sees that the lock does not change.
  }
}

FolderLock::FolderLock() = default;
FolderLock::~FolderLock() = default;
FolderLock::FolderLock(FolderLock&&) noexcept = default;
FolderLock& FolderLock::operator=(FolderLock&&) noexcept = default;

FolderLock lock_folder(const std::string& folder, const LockTimes& times) {
  FolderLock lock;
  if (is_bucket(folder)) {
    end_left_uploads(folder);
    auto held = std::make_unique<FolderLock::Held>(folder, times);
    if (const std::string broken = held->store.broken_condition(); !broken.empty()) {
      log_warning("{}; '{}' is written without a lock", broken, folder);
      return lock;
    }
    held->take();
    lock.held_ = std::move(held);
    return lock;
  }
  make_directories(folder);
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) fail_errno(errno, "cannot open directory '{}'", folder);
  lock.file_ = File(fd, folder);
  if (is_taken(fd)) fail_in_use(folder);
  return lock;
}

}  // namespace vfm::io
