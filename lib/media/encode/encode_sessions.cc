// SPDX-License-Identifier: Apache-2.0
#include "media/encode/encode_sessions.h"

#include <map>
#include <mutex>
#include <utility>

#include "base/error.h"
#include "media/encode/encoder_settings.h"

namespace vfm::media {
namespace {

share::EngineSessions* g_sessions = nullptr;

/// Returns why the encoder opens for no clip on this GPU, or "". Tries once.
std::string why_not_there(const EncoderKind& kind, int gpu) {
  static std::mutex mutex;
  static std::map<std::pair<std::string, int>, std::string> answers;
  const std::lock_guard lock(mutex);
  const auto [found, is_new] = answers.try_emplace({kind.name, gpu});
  if (is_new) found->second = why_not_opened(kind, {}, 8, gpu);
  return found->second;
}

}  // namespace

bool encodes_on_gpu(const std::string& name) {
  return name == "h264_nvenc";
}

std::int64_t engine_samples(int width, int height) {
  const auto to_64 = [](int side) { return (std::int64_t{side} + 63) / 64 * 64; };
  return to_64(width) * to_64(height);
}

std::int64_t nvenc_session_bytes(int width, int height) {
  constexpr std::int64_t kPictures = 8 + 8 + 16, kDriver = std::int64_t{48} << 20;
  return kPictures * (engine_samples(width, height) * 3 / 2) + kDriver;
}

void set_encode_sessions(share::EngineSessions* sessions) {
  g_sessions = sessions;
}

std::shared_ptr<share::EngineSessions::Session> take_encode_session(const EncoderKind& kind,
                                                                    int width, int height) {
  if (!g_sessions || !encodes_on_gpu(kind.name)) return nullptr;
  for (;;) {
    auto session = g_sessions->take(nvenc_session_bytes(width, height));
    if (!session && !g_sessions->thread_may_wait())
      fail(
          "no GPU has a session for encoder '{}' now, and a thread that encodes another clip "
          "already may not wait for one; encode clips one after another",
          kind.name);
    if (!session)
      fail("no GPU has sessions for encoder '{}' and pictures of {}x{} beside the models there",
           kind.name, width, height);
    const std::string why = why_not_there(kind, session->gpu);
    if (why.empty()) return session;
    g_sessions->fail(std::move(session), why);
  }
}

}  // namespace vfm::media
