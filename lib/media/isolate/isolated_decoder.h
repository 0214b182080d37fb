// Inside lib/media only: a Decoder that decodes in a child process (isolated.h). A request for the
// next frame may return several pictures.
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
  /// Opens `bytes`, or the path `name` if bytes.data() is null.
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
  std::deque<Given> ahead_;
  std::exception_ptr failure_;   // Error of the child after the pictures in `ahead_`.
  std::optional<Reply> end_;     // End of the video after the pictures in `ahead_`.
  std::uint64_t taken_ = 0;
  std::uint64_t done_ = 0;       // Bits of places that the next request frees.
  std::uint64_t lent_ = 0;       // Bits of places that callers use.
  std::int64_t read_ = 0;
  double pixels_ = 0;
  std::size_t frame_bytes_ = 0;
  std::optional<std::int64_t> last_pts_;
  std::int64_t corrupt_ = 0;
  bool seeks_ = false;
};

}  // namespace vfm::media
