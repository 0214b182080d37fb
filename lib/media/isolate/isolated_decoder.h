// Inside lib/media only: a Decoder whose work is done by a child (isolated.h).
//
// For sequential reads a child is asked for several pictures at once: it decodes them and waits, so
// both never work at the same time. For reads with seeks it decodes single pictures.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "media/decode/decoder_body.h"
#include "media/isolate/isolated_helper.h"
#include "media/isolate/isolated_pictures.h"

namespace vfm::media {

class PicturePool;

struct Decoder::Apart : Decoder::Body {
  /// `bytes` null: opens the path `name`.
  Apart(const std::string& name, std::string_view bytes, const DecodeOptions& options);
  ~Apart() override;
  const StreamInfo& info() const override { return info_; }
  bool next(Frame& frame) override;
  void seek(std::int64_t pts) override;
  std::int64_t corrupt() const override { return corrupt_; }
  bool seeks() const override { return seeks_; }

 private:
  struct Loans;
  Request request(Ask ask);
  void fetch();
  std::uint32_t how_many() const;
  void check(const PictureFacts& facts);
  Frame lend(Frame frame, std::uint32_t place);
  Frame copy(const Frame& theirs, const PictureFacts& facts);
  void believe(std::int64_t corrupt, bool seeks);

  IsolatedChild child_;
  StreamInfo info_;
  bool keep_hdr_, in_place_;
  std::shared_ptr<PicturePool> pool_;
  std::shared_ptr<Loans> loans_;
  std::deque<Given> ahead_;      // that the child has given, and nobody has asked for yet
  std::exception_ptr failure_;   // what comes after them
  std::optional<Reply> end_;     // or the end
  std::uint64_t taken_ = 0;      // since the child began
  std::uint64_t done_ = 0;       // places that are told with the next request
  std::uint64_t lent_ = 0;       // places of frames that lie there
  std::int64_t read_ = 0;        // frames since it was opened, or went elsewhere
  double pixels_ = 0;            // of these
  std::size_t frame_bytes_ = 0;  // of the last one
  std::optional<std::int64_t> last_pts_;
  std::int64_t corrupt_ = 0;
  bool seeks_ = false;
};

}  // namespace vfm::media
