// Sessions of the video engines of GPUs (NVDEC, NVENC): they limit how many decoders and encoders
// of all programs that share a GPU work on it at once (share/card_board.h).
//
// A session is counted with kSessionBytes of the card's memory, which are enough for pictures of
// 1920x1080; larger ones take several (media/decode/hardware_decoder.h and
// media/encode/encode_sessions.h have the formulas). So sessions use no more memory than is kept
// for them.
//
// No deadlock is possible, since all threads wait in one order: for decoding sessions, encoding
// sessions, a card for a model, a slot (share/slots.h). A thread waits for sessions without its
// slot (Slots::Away). A thread that has sessions and asks for more of that kind, or of an earlier
// one, gets those free at once, or none: then a decoder decodes in software, and an encoder fails.
// The same holds for a thread that works for one that may have sessions. A thread that has a card
// for a model has its own sessions there, in that model's memory, and waits for none. No thread
// waits for those sessions: they count as taken as long as the model stays. Thread-safety: any
// thread.
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
  /// Whether take() waits until there are sessions.
  enum class Wait { yes, no };
  /// For the program `stage`. Each of the `cards` says how many sessions it has. `share`: the file
  /// of VFM_SHARE, or empty. Throws what CardBoard's constructor throws.
  EngineSessions(const std::string& share, std::vector<Card> cards, const std::string& stage,
                 CardKind kind, Wait wait);
  /// For a process with `own` sessions on the first GPU that it sees, whatever others have; the
  /// memory is in its model's need. take() does not wait.
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
  /// Takes as many sessions of one card as `bytes` need. For encoding, which has no alternative,
  /// takes at most as many as a card can have free (CardBoard::most_sessions()); the rest of the
  /// need is not counted. Null: there are none now, or none while loaded models stay, or `wait` or
  /// the thread's sessions forbid waiting. Heeds a stop, as CardBoard::take() does, and throws what
  /// that throws; without a board Error{device} after fail().
  std::shared_ptr<Session> take(std::int64_t bytes, Wait wait = Wait::yes);
  /// Whether this thread has no session that forbids it to wait for these.
  bool thread_may_wait() const;
  /// Leaves a failed card out, as CardBoard::fail() does. Without a board no sessions remain.
  void fail(std::shared_ptr<Session> session, const std::string& why);

  /// Bytes of such a card that this program's sessions keep from models.
  std::int64_t kept_bytes(const Card& card) const;

 private:
  class Taken;
  struct State;
  std::shared_ptr<State> state_;  // shared with taken sessions
};

/// Sessions of a process that decodes or encodes on its model's GPU: enough for two videos of
/// 3840x2160.
inline constexpr int kOwnSessions = 8;

}  // namespace vfm::share
