// Decoding in this process, in a State with a time limit (Bounded), or in another process.
// SPDX-License-Identifier: Apache-2.0
#include "media/decode/decoder_body.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/error.h"
#include "media/decode/bounded.h"
#include "media/decode/decoder_state.h"
#include "media/isolate/isolated_decoder.h"

namespace vfm::media {

/// Ends the loan of the bytes with the decoder, even if opening failed. Work that was left behind
/// may live longer.
class Borrowed {
 public:
  explicit Borrowed(std::shared_ptr<Loan> loan) : loan_(std::move(loan)) {}
  ~Borrowed() {
    if (loan_) loan_->end();
  }
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;

 private:
  std::shared_ptr<Loan> loan_;
};

struct Decoder::Here : Decoder::Body {
  explicit Here(const Source& from, const DecodeOptions& how)
      : name_(from.name),
        borrowed_(from.loan),
        threads_(how.threads),
        hardware_(how.hardware),
        wait_(how.waits_for_session ? share::EngineSessions::Wait::yes
                                    : share::EngineSessions::Wait::no),
        state_(name_, [from, how] { return std::make_shared<State>(from, how); }),
        info_(state_.get()->info) {
    count();
  }

  /// A codec's threads may hang at the end, so the end has a time limit.
  ~Here() override {
    try {
      if (threads_ > 1) state_.end();
    } catch (const Error&) {  // Left behind, and counted.
    } catch (const Stopped&) {
    }
  }

  const StreamInfo& info() const override { return info_; }
  std::int64_t corrupt() const override { return corrupt_; }
  bool seeks() const override { return seeks_; }

  bool next(Frame& frame) override {
    take_session();
    std::optional<Frame> found = state_.call([](State& state) {
      Frame next;
      return state.fetch(next) ? std::optional<Frame>(std::move(next)) : std::nullopt;
    });
    count();
    if (!found && !state_.get()->any_frame) {
      state_.get()->check_possible();
      fail_as(Cause::decode, "'{}' has no frame that can be decoded", name_);
    }
    if (found) frame = *std::move(found);
    return found.has_value();
  }

  void seek(std::int64_t pts) override {
    take_session();
    state_.restart();
    state_.call([pts](State& state) {
      state.seek(pts);
      return true;
    });
    count();
  }

 private:
  /// Takes a session before the first picture, so that a caller of info() takes none. Not in the
  /// State, because bounded work must not wait for others.
  void take_session() {
    const HardwareDecoder* const hardware = std::exchange(hardware_, nullptr);
    const std::int64_t bytes = hardware && state_.get() ? state_.get()->session_bytes : 0;
    if (bytes == 0) return;
    state_.call([session = hardware->sessions()->take(bytes, wait_)](State& state) {
      state.decode_with(session);
      return true;
    });
  }
  void count() {
    corrupt_ = state_.get()->corrupt + state_.get()->lost();
    seeks_ = state_.get()->seeks();
  }

  std::string name_;
  Borrowed borrowed_;
  int threads_;
  const HardwareDecoder* hardware_;  // Null after take_session().
  share::EngineSessions::Wait wait_;
  Bounded<State> state_;
  StreamInfo info_;
  std::int64_t corrupt_ = 0;
  bool seeks_ = false;
};

Decoder::Decoder(const std::string& path, const DecodeOptions& options) {
  if (is_isolating())
    body_ = std::make_unique<Apart>(path, std::string_view(), options);
  else
    body_ = std::make_unique<Here>(Source{path, {}, {}}, options);
}
Decoder::Decoder(std::string_view bytes, const std::string& name, const DecodeOptions& options) {
  if (!bytes.data()) bytes = "";
  if (is_isolating())
    body_ = std::make_unique<Apart>(name, bytes, options);
  else
    body_ = std::make_unique<Here>(Source{name, bytes, std::make_shared<Loan>()}, options);
}
Decoder::~Decoder() = default;
Decoder::Decoder(Decoder&&) noexcept = default;
Decoder& Decoder::operator=(Decoder&&) noexcept = default;

const StreamInfo& Decoder::info() const {
  return body_->info();
}
std::int64_t Decoder::corrupt() const {
  return body_->corrupt();
}
void Decoder::seek(std::int64_t pts) {
  body_->seek(pts);
}
bool Decoder::seeks() const {
  return body_->seeks();
}
bool Decoder::next(Frame& frame) {
  return body_->next(frame);
}

}  // namespace vfm::media
