// SPDX-License-Identifier: Apache-2.0
#include "workers/service.h"

#include <poll.h>
#include <unistd.h>

#include <csignal>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/run_end.h"
#include "share/channel.h"
#include "tensor/device.h"
#include "workers/find_gpus.h"
#include "workers/wire.h"

namespace vfm::workers {
namespace {

int g_channel = -1;  // set before the first log line

void log_to_program(LogLevel level, std::string_view message) {
  Word word;
  word.say = Say::log;
  word.level = level;
  // The program may have ended.
  (void)share::send_message(g_channel, &word, sizeof word, message);
}

/// Starts a thread that kills this process when the program closes its end of the channel.
void end_with_program(int channel) {
  std::thread([channel] {
    for (;;) {
      pollfd event{channel, POLLRDHUP, 0};
      if (::poll(&event, 1, -1) > 0) ::kill(::getpid(), SIGKILL);
    }
  }).detach();
}

/// The service kGpuList, which opens no GPU.
class GpuList final : public Service {
 public:
  Parcel answer(const Parcel&) override {
    Parcel parcel;
    parcel.words = Json{{"why_none", why_no_gpu()}, {"gpus", Json::array()}};
    for (const GpuFacts& gpu : list_gpus())
      parcel.words["gpus"].push_back(
          {{"name", gpu.name}, {"uuid", gpu.uuid}, {"memory", gpu.memory}});
    return parcel;
  }
};

class Server {
 public:
  Server(int channel, const Services& services) : channel_(channel), services_(services) {}

  /// Returns when the other end is closed or has sent an invalid message.
  void run() {
    Word word;
    while (hear(word)) {
      Word reply;
      reply.say = Say::answer;
      std::string text;
      try {
        reply.bytes = answers_->put(answer(requests_->take(word.bytes, true)));
      } catch (const Error& error) {
        reply = {.say = Say::error, .kind = error.kind(), .cause = error.cause()};
        text = error.what();
      } catch (const Stopped&) {
        // Workers ignore signals, so the service called end_run(), such as for a full disk.
        reply = {.say = Say::end};
        text = run_end_message();
      } catch (const std::bad_alloc&) {
        reply = {.say = Say::error, .cause = Cause::memory};
        text = "out of memory";
      } catch (const std::exception& error) {
        reply = {.say = Say::error};
        text =
            vfm::format("internal error: {}; please report it with the command line", error.what());
      }
      if (!share::send_message(channel_, &reply, sizeof reply, text)) return;
    }
  }

 private:
  bool hear(Word& word) {
    std::string text;
    std::vector<share::Descriptor> descriptors;
    if (!share::receive_message(channel_, &word, sizeof word, text, descriptors)) return false;
    if (word.say == Say::ask) return service_ != nullptr;
    if (word.say != Say::open || descriptors.size() != 2 || service_) return false;
    requests_ = std::make_unique<Room>(std::move(descriptors[0]), word.most);
    answers_ = std::make_unique<Room>(std::move(descriptors[1]), word.most);
    return true;
  }

  Parcel answer(Parcel request) {
    if (service_) return service_->answer(request);
    if (request.name == kGpuList) {
      service_ = std::make_unique<GpuList>();
      return {};
    }
    const auto found = services_.find(request.name);
    if (found == services_.end()) fail("a worker of this program is no '{}'", request.name);
    constexpr const char* kFirstWords = "what a worker is started with";
    set_log_sink(log_to_program,
                 static_cast<LogLevel>(need_integer(request.words, "log", kFirstWords)));
    const Device device = parse_device(need_string(request.words, "device", kFirstWords));
    if (device == Device::cuda && !why_no_gpu().empty())
      throw GpuError(vfm::format("cannot use the GPU: {}", why_no_gpu()));
    request.words = Json(request.words->at("open"));
    service_ = found->second(request, device);
    return {};
  }

  const int channel_;
  const Services& services_;
  std::unique_ptr<Room> requests_, answers_;
  std::unique_ptr<Service> service_;
};

}  // namespace

int serve_gpu(int channel, const Services& services) {
  g_channel = channel;
  end_with_program(channel);
  Server(channel, services).run();
  return 0;
}

}  // namespace vfm::workers
