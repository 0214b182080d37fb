// SPDX-License-Identifier: Apache-2.0
#include "workers/worker.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/log.h"
#include "base/run_end.h"
#include "base/stop.h"
#include "share/own_program.h"
#include "workers/service.h"
#include "workers/wire.h"

namespace vfm::workers {
namespace {

constexpr int kLookForStop = 100;           // milliseconds
constexpr std::size_t kLongestLine = 4096;  // longer lines of standard error are split

std::pair<share::Descriptor, share::Descriptor> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) fail_errno(errno, "cannot make a pipe to a worker");
  return {share::Descriptor(ends[0]), share::Descriptor(ends[1])};
}

/// Logs the worker's standard output and error until the worker has ended.
void pass_on(const share::Descriptor& speech, const std::string& name) {
  std::string line;
  const auto say = [&] {
    if (!line.empty()) log_warning("{}: {}", name, line);
    line.clear();
  };
  for (;;) {
    char some[1024];
    const ssize_t got = ::read(speech.get(), some, sizeof some);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return say();
    for (ssize_t i = 0; i < got; ++i) {
      if (some[i] != '\n') line += some[i];
      if (some[i] == '\n' || line.size() == kLongestLine) say();
    }
  }
}

/// Returns how a process ended, for people: "of SIGKILL, as when memory is short".
std::string end_words(int status) {
  if (WIFEXITED(status)) return vfm::format("with status {}", WEXITSTATUS(status));
  const char* const name = ::sigabbrev_np(WTERMSIG(status));
  std::string words =
      name ? std::string("of SIG") + name : vfm::format("of signal {}", WTERMSIG(status));
  if (WTERMSIG(status) == SIGKILL) words += ", as when memory is short";
  return words;
}

}  // namespace

struct Worker::State {
  explicit State(const WorkerPlan& plan) : most(plan.most_bytes), requests(most), answers(most) {}

  const std::uint64_t most;
  std::mutex mutex;  // one request at a time
  Room requests, answers;
  share::Descriptor channel;
  pid_t pid = 0;  // 0 when the worker has ended
  std::string why_lost;
  std::thread speech;
};

Worker::Worker(const share::SharedGpu& gpu, const WorkerPlan& plan)
    : name_(gpu.name), state_(std::make_unique<State>(plan)) {
  auto [ours, theirs] = share::make_channel("a worker");
  auto [hears, says] = make_pipe();
  const bool on_gpu = gpu.index >= 0;
  share::OwnProgram program{
      .mode = kServeGpu, .channel = theirs.get(), .speech = says.get(), .held = plan.life};
  if (!plan.sees_all) program.variables = {{"CUDA_VISIBLE_DEVICES", on_gpu ? gpu.name : ""}};
  state_->pid = share::start_own_program(program, vfm::format("a worker on {}", gpu.name));
  state_->channel = std::move(ours);
  theirs = share::Descriptor();
  says = share::Descriptor();
  try {
    state_->speech = std::thread([from = std::move(hears), name = name_] { pass_on(from, name); });
    Parcel first{plan.service,
                 Json{{"device", on_gpu ? "cuda" : "cpu"},
                      {"log", static_cast<int>(log_level())},
                      {"open", plan.open.words}},
                 plan.open.tensors};
    exchange(first, true);
  } catch (...) {
    end();
    throw;
  }
}

Worker::~Worker() {
  end();
}

void Worker::end() noexcept {
  if (state_->pid != 0) {
    ::kill(state_->pid, SIGKILL);  // No other process gets this pid before waitpid().
    int status = 0;
    while (::waitpid(state_->pid, &status, 0) < 0 && errno == EINTR) {
    }
    state_->pid = 0;
    if (state_->why_lost.empty()) state_->why_lost = "it was ended";
  }
  if (state_->speech.joinable()) state_->speech.join();
}

void Worker::lose(const std::string& why) {
  state_->why_lost = why;
  end();
  throw WorkerLost(why);
}

Parcel Worker::ask(const Parcel& request) {
  const std::lock_guard one(state_->mutex);
  return exchange(request, false);
}

Parcel Worker::exchange(const Parcel& request, bool first) {
  State& s = *state_;
  if (s.pid == 0) {
    check_stop();  // After a stop request another thread ended the worker; the GPU has not failed.
    throw WorkerLost(s.why_lost);
  }
  Word word;
  word.say = first ? Say::open : Say::ask;
  word.bytes = s.requests.put(request);
  std::vector<int> descriptors;
  if (first) descriptors = {s.requests.descriptor(), s.answers.descriptor()};
  if (first) word.most = s.most;
  if (!share::send_message(s.channel.get(), &word, sizeof word, {}, descriptors)) tell_death();
  try {
    return hear();
  } catch (const Stopped&) {
    s.why_lost = "the program stops";
    end();
    throw;
  }
}

/// Returns the answer. Passes earlier log messages to the log.
Parcel Worker::hear() {
  State& s = *state_;
  for (;;) {
    pollfd event{s.channel.get(), POLLIN, 0};
    const int ready = ::poll(&event, 1, kLookForStop);
    check_stop();
    // Ends the worker, since its answer would be taken for the answer to the next request.
    if (ready < 0 && errno != EINTR) lose("cannot wait for its worker: " + errno_text(errno));
    if (ready <= 0) continue;
    Word word;
    std::string text;
    std::vector<share::Descriptor> none;
    if (!share::receive_message(s.channel.get(), &word, sizeof word, text, none)) tell_death();
    if (!is_sound(word)) lose("its worker says what cannot be");
    if (word.say == Say::log) {
      log_message(word.level, text);
      continue;
    }
    if (word.say == Say::error) throw told_error(word, text);
    if (word.say == Say::end) {
      end_run(text);
      throw Stopped();
    }
    try {
      return s.answers.take(word.bytes, false);
    } catch (const Error& error) {
      lose(error.what());
    }
  }
}

/// Called when the worker's end of the channel is closed.
void Worker::tell_death() {
  int status = 0;
  pid_t found = 0;
  // The worker has usually ended, too. If it has not ended after a second, lose() ends it.
  for (int i = 0; i < 100 && found == 0; ++i) {
    found = ::waitpid(state_->pid, &status, WNOHANG);
    if (found < 0 && errno == EINTR) found = 0;
    if (found == 0) ::poll(nullptr, 0, 10);
  }
  if (found == state_->pid) state_->pid = 0;
  lose(found > 0 ? "its worker has died " + end_words(status)
                 : "its worker has closed its channel");
}

}  // namespace vfm::workers
