// Sessions of the video engines of GPUs (NVDEC, NVENC): how many decoders or encoders work on a
// card at once, of all programs that share it (base/card_board.h).
//
// A session is counted with kSessionBytes of the card's memory, which are enough for pictures of
// 1920x1080; what needs more takes several (media/hardware_decoder.h and media/encode_sessions.h
// have the formulas). So the sessions of all programs have no more memory than is kept for them.
//
// Nobody waits in a circle, as all wait in one order: for sessions of decoding, for those of
// encoding, for a card for a model, for a slot (base/slots.h). A thread waits for sessions without
// its slot (Slots::Away). One that has some asks for more of that kind, or of one before, and gets
// what is free at once, or nothing, which is for it to make good: a decoder decodes in software, an
// encoder is an error. So does one that works for a thread which may have some. And who has a card
// for a model has sessions of his own there, in that model's memory, and waits for none. Nor does
// anybody wait for those sessions: they count as taken as long as the model stays.
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/card_board.h"

namespace vfm {

class EngineSessions {
 public:
  /// Whether take() waits until there are sessions.
  enum class Wait { yes, no };
  /// Of a program, `stage`. Each of the `cards` says how many it has. `share`: the file of --share,
  /// or empty. Throws what CardBoard's constructor throws.
  EngineSessions(const std::string& share, std::vector<Card> cards, const std::string& stage,
                 CardKind kind, Wait wait);
  /// So many that one process has for itself on the first GPU that it sees, whatever others have;
  /// their memory is in what its model needs. take() does not wait.
  explicit EngineSessions(int own);
  ~EngineSessions();
  EngineSessions(const EngineSessions&) = delete;
  EngineSessions& operator=(const EngineSessions&) = delete;

  /// What take() gives, until it is gone, which may be after the EngineSessions.
  class Session {
   public:
    virtual ~Session() = default;
    int gpu = 0;  ///< Card::index
  };
  /// As many sessions of one card as need so many bytes; of encoding, which nothing else can do, at
  /// most those that a card will have (CardBoard::most_sessions()): what is needed beyond that is
  /// not counted. Null: there are none, now or for as long as the models stay that are there, or
  /// `wait` or what the thread has says that this one does not wait either. Heeds a stop, as
  /// CardBoard::take() does, and throws what that throws; without a board Error{device} after
  /// fail().
  std::shared_ptr<Session> take(std::int64_t bytes, Wait wait = Wait::yes);
  /// Whether this thread has no session for which it would not wait for more of these.
  bool thread_may_wait() const;
  /// The card cannot do it: it is left out, as CardBoard::fail() says. Without a board there are
  /// none from then on.
  void fail(std::shared_ptr<Session> session, const std::string& why);

  /// Bytes of such a card that models cannot have beside the sessions of this program.
  std::int64_t kept_bytes(const Card& card) const;

 private:
  class Taken;
  struct State;
  std::shared_ptr<State> state_;  // also of what was taken
};

/// Sessions that a process has for itself where it decodes or encodes for a model that it has on
/// the same GPU: two videos of 3840x2160.
inline constexpr int kOwnSessions = 8;

}  // namespace vfm
