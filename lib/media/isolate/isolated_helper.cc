// SPDX-License-Identifier: Apache-2.0
#include "media/isolate/isolated_helper.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <mutex>
#include <utility>

#include "base/address.h"
#include "base/input_limits.h"
#include "base/run_end.h"
#include "base/stop.h"
#include "base/units.h"
#include "base/work_limit.h"
#include "io/remote/address.h"
#include "media/container/container.h"
#include "media/decode/bounded.h"
#include "media/isolate/confine.h"
#include "media/isolate/isolated.h"
#include "share/own_program.h"

namespace vfm::media {
namespace {

constexpr const char* kDecoding = "a process that decodes";

/// This program as the helper process. If the helper dies, its children die with it
/// (PR_SET_PDEATHSIG), and the next fork starts a new helper. Thread-safe.
class Helper {
 public:
  /// Returns the helper's end of the channel in the new process, and -1 in this process.
  int fork_itself() {
    auto [ours, theirs] = share::make_channel(kDecoding);
    pid_ = ::fork();
    if (pid_ == 0) return theirs.release();  // serve_isolated() closes all others.
    if (pid_ > 0) channel_ = std::move(ours);
    return -1;
  }

  void start() {
    const std::lock_guard lock(mutex_);
    if (channel_.get() < 0) spawn();
    started_ = true;
  }

  bool started() const { return started_; }

  Forked fork(int descriptor) {
    const std::lock_guard lock(mutex_);
    const HelperReply reply = tell_one({.act = HelperAct::fork}, {descriptor});
    return {std::max(reply.pid, 0), deaths_};
  }

  bool confines(std::uint64_t memory) {
    const std::lock_guard lock(mutex_);
    return tell_one({.act = HelperAct::try_out, .memory = memory}, {}).status == 0;
  }

  /// Ends the child and returns its status. The helper does this, because only a parent knows that
  /// the pid is still that of its child.
  int end(const Forked& child) noexcept {
    const std::lock_guard lock(mutex_);
    HelperReply reply;
    if (child.helper == deaths_) {
      if (tell({.act = HelperAct::end, .pid = child.pid}, {}, reply)) return reply.status;
      note_death();
    }
    return status_;
  }

 private:
  static constexpr int kMostDeaths = 8;

  void spawn() {
    auto [ours, theirs] = share::make_channel(kDecoding);
    pid_ = share::start_own_program({.mode = kServeIsolated, .channel = theirs.get()}, kDecoding);
    channel_ = std::move(ours);
  }

  HelperReply tell_one(const HelperOrder& order, const std::vector<int>& descriptors) {
    for (;;) {
      if (channel_.get() < 0 && deaths_ > kMostDeaths) give_up();
      if (channel_.get() < 0) spawn();
      HelperReply reply;
      if (tell(order, descriptors, reply)) return reply;
      note_death();
    }
  }

  bool tell(const HelperOrder& order, const std::vector<int>& descriptors, HelperReply& reply) {
    std::string text;
    std::vector<share::Descriptor> none;
    return share::send_message(channel_.get(), &order, sizeof order, {}, descriptors) &&
           share::receive_message(channel_.get(), &reply, sizeof reply, text, none);
  }

  void note_death() noexcept {
    channel_ = share::Descriptor();
    ::kill(pid_, SIGKILL);  // The pid is not reused before waitpid().
    status_ = 0;
    while (::waitpid(pid_, &status_, 0) < 0 && errno == EINTR)
      continue;
    ++deaths_;
  }

  [[noreturn]] void give_up() const {
    const std::string message = fmt::format(
        "the process that starts decoders has died {} times{}; if memory is short, give the same "
        "command with a smaller -j",
        deaths_, WIFSIGNALED(status_) && WTERMSIG(status_) == SIGKILL ? ", killed" : "");
    end_run(message);
    fail_as(Cause::crash, "{}", message);
  }

  std::mutex mutex_;  // Guards all members but started_.
  std::atomic<bool> started_{false};
  share::Descriptor channel_;  // Empty if the helper has died.
  pid_t pid_ = 0;
  int status_ = 0, deaths_ = 0;  // Of the last helper that died, and how many.
};

/// Never destroyed, because threads that were left behind may hold its children.
Helper& helper() {
  static Helper* const one = new Helper;
  return *one;
}

struct Opened {
  share::Descriptor file;
  std::uint64_t bytes = 0;
};

Opened open_file(const std::string& name) {
  const std::string scheme = url_scheme(name);
  if (!scheme.empty() && scheme != "file")
    fail_as(
        Cause::refused,
        "cannot open '{}': with --isolate only files, s3, http and https are read; fetch it first",
        name);
  const std::string path = scheme.empty() ? name : name.substr(std::strlen("file://"));
  Opened opened{share::Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK))};
  struct stat info {};
  if (opened.file.get() < 0 || ::fstat(opened.file.get(), &info) != 0)
    fail_errno(errno, "cannot open '{}'", name);
  if (S_ISDIR(info.st_mode)) fail_as(Cause::open, "'{}' is a directory, not a video", path);
  if (!S_ISREG(info.st_mode))
    fail_as(Cause::open,
            "cannot open '{}': with --isolate only regular files are decoded; save it as one first",
            name);
  if (info.st_size == 0) fail_as(Cause::format, "'{}' is empty", path);
  opened.bytes = static_cast<std::uint64_t>(info.st_size);
  return opened;
}

share::Descriptor make_memory(std::uint64_t bytes) {
  share::Descriptor memory(::memfd_create("vfm", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  // The seals keep a child from making the memory shorter while others read it.
  if (memory.get() < 0 || ::ftruncate(memory.get(), static_cast<off_t>(bytes)) != 0 ||
      ::fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    fail_errno(errno, "cannot make memory for a process that decodes");
  return memory;
}

Opened open_bytes(const std::string& name, std::string_view bytes) {
  if (bytes.empty()) fail_as(Cause::format, "'{}' is empty", name);
  Opened opened{make_memory(bytes.size()), bytes.size()};
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t put = ::pwrite(opened.file.get(), bytes.data() + done, bytes.size() - done,
                                 static_cast<off_t>(done));
    if (put < 0 && errno != EINTR)
      fail_errno(errno, "cannot hand '{}' to the process that decodes it", name);
    done += put > 0 ? static_cast<std::size_t>(put) : 0;
  }
  return opened;
}

}  // namespace

int fork_isolation(bool wanted) {
  try {
    return wanted && can_confine() ? helper().fork_itself() : -1;
  } catch (const Error&) {  // begin_isolation() reports it.
    return -1;
  }
}

void begin_isolation() {
  if (!input_limits().isolate) return;
  if (!can_confine())
    fail_usage(
        "--isolate needs libseccomp, which this vfm was built without; install it and build again");
  helper().start();
  try {
    // Fails before any work if the system lacks what each child needs.
    make_memory(kSharedHead);
    if (!helper().confines(input_limits().isolate_memory))
      fail("the system does not confine a process that would decode");
  } catch (const Error& error) {
    fail_usage("--isolate does not work here: {}", error.what());
  }
}

bool is_isolating() noexcept {
  return helper().started();
}

IsolatedChild::IsolatedChild(const std::string& name, std::string_view bytes, Request request)
    : name_(name) {
  Opened source;
  if (bytes.data()) {
    source = open_bytes(name, bytes);
  } else if (io::is_remote(name)) {
    far_ = std::make_unique<FarServer>(name);
    source = {far_->take_channel(), far_->facts().size};
    request.far = 1;
    request.far_jumps = far_->facts().jumps;
  } else {
    source = open_file(name);
  }
  const InputLimits& limits = input_limits();
  request.ask = Ask::open;
  request.bytes = bytes_ = source.bytes;
  request.shared = shared_bytes(limits.max_pixels);
  request.max_pixels = limits.max_pixels;
  request.memory = limits.isolate_memory;
  const share::Descriptor memory = make_memory(request.shared);
  shared_ = std::make_shared<const share::MappedMemory>(memory.get(), request.shared, false);
  auto [ours, theirs] = share::make_channel(kDecoding);
  forked_ = helper().fork(theirs.get());
  if (gone()) fail("cannot start a process that decodes '{}'", name);
  channel_ = std::move(ours);
  theirs = share::Descriptor();
  try {
    opened_ = ask(request, name, {source.file.get(), memory.get()});
  } catch (...) {
    end();
    throw;
  }
}

IsolatedChild::~IsolatedChild() {
  end();
}

int IsolatedChild::end() noexcept {
  return gone() ? 0 : helper().end(std::exchange(forked_, {}));
}

/// Returns the processor seconds of all the child's threads. The pid is not reused, because the
/// helper has not waited for the child.
double IsolatedChild::spent() const noexcept {
  clockid_t clock{};
  timespec time{};
  if (::clock_getcpuclockid(forked_.pid, &clock) != 0 || ::clock_gettime(clock, &time) != 0)
    return 0;
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

void IsolatedChild::check_spent() {
  try {
    check_work(name_, {0, spent() - began_}, bytes_);
  } catch (const Error&) {
    end();
    throw;
  }
}

void IsolatedChild::wait() {
  const double limit = input_limits().timeout;
  // A hostile file may control the child and its beats, so there is also a limit for one answer. An
  // honest child's work for an answer is limited by the size of the file.
  constexpr double kLimits = 10, kSlowest = 64 << 10;
  const double longest = kLimits * limit + static_cast<double>(bytes_) / kSlowest;
  StillClock clock;
  for (;;) {
    pollfd event{channel_.get(), POLLIN, 0};
    const int ready = ::poll(&event, 1, static_cast<int>(1000 * StillClock::kStep));
    check_spent();
    if (ready > 0) return;
    if (ready < 0 && errno != EINTR) fail_errno(errno, "cannot wait for a process that decodes");
    if (stop_requested()) end();  // Otherwise its answer would go to the next request.
    check_stop();
    if (limit <= 0) continue;
    const double still = clock.still(head().beats + (far_ ? far_->beats() : 0));
    if (still <= limit && clock.all() <= longest) continue;
    end();
    if (still > limit) fail_still(name_);
    fail_as(Cause::timeout,
            "cannot decode '{}': it gave nothing for {}, though it said that it gets on; --timeout "
            "waits longer",
            name_, format_seconds(longest));
  }
}

void IsolatedChild::tell_death() {
  // The channel is closed, so the child has ended by itself, or is about to.
  const int status = end();
  check_stop();  // A stop also ends the thread that reads an object for the child.
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
    fail_as(Cause::memory, "the process that decoded '{}' was killed, as when memory is short",
            name_);
  const char* const number = WIFSIGNALED(status) ? ::sigabbrev_np(WTERMSIG(status)) : nullptr;
  fail_as(Cause::crash, "the process that decoded '{}' has died{}{}", name_,
          number ? " of SIG" : "", number ? number : "");
}

IsolatedChild::Told IsolatedChild::ask(const Request& request, std::string_view text,
                                       const std::vector<int>& descriptors) {
  if (gone()) fail_as(Cause::crash, "the process that decoded '{}' is gone", name_);
  if (request.ask == Ask::seek) began_ = spent();
  Told told;
  std::vector<share::Descriptor> none;
  if (!share::send_message(channel_.get(), &request, sizeof request, text, descriptors))
    tell_death();
  wait();
  if (!share::receive_message(channel_.get(), &told.reply, sizeof told.reply, told.text, none))
    tell_death();
  if (told.reply.answer == ChildAnswer::error) check_stop();
  if (told.reply.answer == ChildAnswer::error)
    throw Error(told.text, share::checked_cause(told.reply.cause, Cause::crash));
  return told;
}

}  // namespace vfm::media
