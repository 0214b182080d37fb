// Inside lib/media only: a Decoder whose work a child does (isolated.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "media/decoder_body.h"
#include "media/isolated_helper.h"

namespace vfm::media {

class PicturePool;

struct Decoder::Apart : Decoder::Body {
  /// `bytes` null: what is at the path `name`.
  Apart(const std::string& name, std::string_view bytes, const DecodeOptions& options);
  ~Apart() override;
  const StreamInfo& info() const override { return info_; }
  bool next(Frame& frame) override;
  void seek(std::int64_t pts) override;
  std::int64_t corrupt() const override { return corrupt_; }
  bool seeks() const override { return seeks_; }

 private:
  IsolatedChild child_;
  StreamInfo info_;
  bool keep_hdr_;
  std::shared_ptr<PicturePool> pool_;
  std::optional<std::int64_t> last_pts_;
  std::int64_t corrupt_ = 0;
  bool seeks_ = false;
};

}  // namespace vfm::media
