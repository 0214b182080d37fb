// Sessions limit how many decoders and encoders of all programs use the video engines (NVDEC,
// NVENC) of one GPU at the same time (share/gpu_board.h).
//
// A session reserves kSessionBytes of the GPU's memory, enough for pictures of 1920x1080. Larger
// pictures take several sessions (formulas: media/decode/hardware_decoder.h,
// media/encode/encode_sessions.h).
//
// Deadlocks are impossible, since all threads wait in the same order: first for decoding sessions,
// then for encoding sessions, then for a GPU for a model, and then for a slot (share/slots.h). A
// thread that waits for sessions gives up its slot (Slots::Away). A thread that has sessions, or
// that works for such a thread, never waits for sessions of the same kind, or of an earlier kind in
// this order. If such a thread gets no sessions, its decoder decodes in software, and its encoder
// fails. A thread that has a GPU for a model never waits for sessions: it uses the sessions of the
// model's process (kOwnSessions).
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "share/gpu_board.h"

namespace vfm::share {

class EngineSessions {
 public:
  /// Whether take() waits until enough sessions are free.
  enum class Wait { yes, no };
  /// Opens the sessions of `gpus` for the program `stage`. SharedGpu::sessions is the number of
  /// sessions of each GPU. With Wait::no, take() never waits. `share` is the file of VFM_SHARE, or
  /// empty. Throws what GpuBoard's constructor throws.
  EngineSessions(const std::string& share, std::vector<SharedGpu> gpus, const std::string& stage,
                 GpuKind kind, Wait wait);
  /// For a process with a model: makes `own` sessions on the first GPU that the process sees. The
  /// model's GpuNeed includes the memory of these sessions. take() does not wait.
  explicit EngineSessions(int own);
  ~EngineSessions();
  EngineSessions(const EngineSessions&) = delete;
  EngineSessions& operator=(const EngineSessions&) = delete;

  /// Sessions that take() returned. The destructor gives them back. A Session may outlive its
  /// EngineSessions.
  class Session {
   public:
    virtual ~Session() = default;
    int gpu = 0;  ///< Number of the GPU, as SharedGpu::index.
  };
  /// Takes the sessions for `bytes` of memory, all on one GPU. For encoding, takes at most
  /// GpuBoard::most_sessions(). If too few sessions are free, waits for them. Returns null instead
  /// if `wait` is Wait::no, if thread_may_wait() is false, or if the sessions cannot become free
  /// while the loaded models stay loaded. Throws what GpuBoard::take() throws.
  std::shared_ptr<Session> take(std::int64_t bytes, Wait wait = Wait::yes);
  /// Returns whether this thread may wait. A thread with a session of this kind may not wait. A
  /// thread with an encoding session may not wait for decoding sessions, either.
  bool thread_may_wait() const;
  /// Reports a failed GPU, as GpuBoard::fail() does. A process with a model has no board. There,
  /// take() throws Error{device} after fail().
  void fail(std::shared_ptr<Session> session, const std::string& why);

  /// Returns the bytes of `gpu` that this program keeps for sessions.
  std::int64_t kept_bytes(const SharedGpu& gpu) const;

 private:
  class Taken;
  struct State;
  std::shared_ptr<State> state_;
};

/// Number of sessions of a process that decodes or encodes on the GPU of its model.
inline constexpr int kOwnSessions = 8;

}  // namespace vfm::share
