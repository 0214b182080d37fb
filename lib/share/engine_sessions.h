// Sessions of the video engines of GPUs (NVDEC, NVENC). They limit how many decoders and encoders
// of all programs work on one GPU at once (share/card_board.h).
//
// A session reserves kSessionBytes of the card's memory, enough for pictures of 1920x1080. Larger
// pictures take several sessions (media/decode/hardware_decoder.h and
// media/encode/encode_sessions.h have the formulas).
//
// No deadlock is possible, since all threads wait in one order: first for decoding sessions, then
// for encoding sessions, a card for a model, and a slot (share/slots.h). A thread waits for
// sessions without its slot (Slots::Away). A thread that has sessions and asks for more, of their
// kind or of an earlier kind in this order, does not wait: if too few are free, a decoder decodes
// in software, and an encoder fails. A thread that works for a thread with sessions does not wait,
// either. A thread that has a card for a model uses sessions that are part of the model's memory,
// and does not wait for sessions. The model's sessions stay taken as long as the model is loaded.
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "share/card_board.h"

namespace vfm::share {

class EngineSessions {
 public:
  /// Says whether take() waits until enough sessions are free.
  enum class Wait { yes, no };
  /// Makes the sessions of the program `stage`. Card::sessions says how many sessions each card
  /// has. `share` is the file of VFM_SHARE, or empty. Throws what CardBoard's constructor throws.
  EngineSessions(const std::string& share, std::vector<Card> cards, const std::string& stage,
                 CardKind kind, Wait wait);
  /// Makes `own` sessions for a process with a model, on the first GPU that the process sees,
  /// whatever number other programs use. The model's CardNeed includes the memory of these
  /// sessions. take() does not wait.
  explicit EngineSessions(int own);
  ~EngineSessions();
  EngineSessions(const EngineSessions&) = delete;
  EngineSessions& operator=(const EngineSessions&) = delete;

  /// Sessions from take(), held until destroyed; may outlive the EngineSessions.
  class Session {
   public:
    virtual ~Session() = default;
    int gpu = 0;  ///< Card::index
  };
  /// Takes as many sessions of one card as `bytes` need. An encoder has no alternative, so it takes
  /// at most as many as a card can have free (CardBoard::most_sessions()), even if `bytes` need
  /// more. Returns null if too few are free, and either waiting is not allowed (by `wait`, or
  /// thread_may_wait() is false) or they cannot become free while loaded models stay. Throws what
  /// CardBoard::take() throws; without a board, Error{device} after fail().
  std::shared_ptr<Session> take(std::int64_t bytes, Wait wait = Wait::yes);
  /// Returns whether this thread may wait: it has no session of this kind or of a later kind.
  bool thread_may_wait() const;
  /// Leaves a failed card out, as CardBoard::fail() does. Without a board, no sessions remain.
  void fail(std::shared_ptr<Session> session, const std::string& why);

  /// Returns the bytes of `card` that this program's sessions keep from models.
  std::int64_t kept_bytes(const Card& card) const;

 private:
  class Taken;
  struct State;
  std::shared_ptr<State> state_;  // shared with taken sessions
};

/// Sessions of a process that decodes or encodes on its model's GPU. They are enough for two videos
/// of 3840x2160.
inline constexpr int kOwnSessions = 8;

}  // namespace vfm::share
