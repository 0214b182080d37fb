// Sessions of the video engines of GPUs (NVDEC, NVENC): how many decoders or encoders work on a
// card at once, of all programs that share it (base/card_board.h).
//
// A session is counted with kSessionBytes of the card's memory, which are enough for pictures of
// 1920x1080; what needs more takes several (media/hardware_decoder.h and media/encode_sessions.h
// have the formulas). So the sessions of all programs have no more memory than is kept for them.
//
// What a thread may wait for. Whoever waits for sessions of decoding has none, of either kind, and
// whoever waits for sessions of encoding has none of encoding, but may decode: a thread that has
// some takes what is free, or nothing, at once, which is for it to make good (a decoder decodes in
// software). A thread with sessions may then wait for a card for a model, and for a slot
// (base/slots.h). Who computes on a card has sessions of his own there, own_sessions(), and waits
// for none. So of decoding, encoding, a model's card each is waited for without any that comes
// later, and nobody waits in a circle. That holds also where a thread waits for a slot with
// sessions, as long as who waits for sessions has no slot that it could give back.
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
  /// As many sessions of one card as need so many bytes. Null: there are none, now or for as long
  /// as the models stay that are there, or `wait` says that this one does not wait either. Heeds a
  /// stop, as CardBoard::take() does, and throws what that throws.
  std::shared_ptr<Session> take(std::int64_t bytes, Wait wait = Wait::yes);
  /// The card cannot do it: it is left out, as CardBoard::fail() says. Not of own ones.
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
