// SPDX-License-Identifier: Apache-2.0
#include "clip/cut/smart_cut.h"

#include <fmt/core.h>

#include <utility>

#include "base/error.h"

namespace vfm::clip {
namespace {

/// Maximum number of frames that wait because they may be the clip's tail. A longer tail, of
/// sources with more B-frames in a row, is decoded again.
constexpr std::size_t kWaiting = 8;

bool is_kept_as_coded(const media::StreamInfo& info, const ClipRecipe& recipe) {
  if (info.pixel_format == "yuv420p" || info.pixel_format == "yuvj420p") return true;
  return info.pixel_format == "yuv420p10le" && info.is_hdr() && recipe.keep_hdr;
}

}  // namespace

SmartStart smart_start(const ClipRecipe& recipe, const media::StreamInfo& info) {
  SmartStart start;
  start.encoder = media::splice_encoder(info.codec);
  std::string& reason = start.reason;
  if (start.encoder.empty())
    reason =
        fmt::format("no encoder makes frames that can stand beside copied ones of {}", info.codec);
  else if (!recipe.smart_encoder.empty() && recipe.smart_encoder != start.encoder)
    reason = fmt::format("encoder '{}' makes no {}", recipe.smart_encoder, info.codec);
  else if (info.rotation != 0 || info.mirror)
    reason = "the source is shown turned or mirrored";
  else if (info.is_hdr() && !recipe.keep_hdr)
    reason = "the source is HDR, which is tone-mapped";
  else if (info.is_wide_sdr())
    reason = "the source has the colours of BT.2020, which are converted";
  else if (!is_kept_as_coded(info, recipe))
    reason = fmt::format("the source's pixels ({}) are converted", info.pixel_format);
  else if (info.interlaced)
    reason = "the source is interlaced";
  else if (media::coded_size(start.encoder, info.width, info.height) !=
           std::pair(info.width, info.height))
    reason = fmt::format("encoder '{}' makes no pictures of {}x{}", start.encoder, info.width,
                         info.height);
  return start;
}

void decode_again(const SmartStart& from, std::int64_t begin, std::int64_t end,
                  const std::function<void(const media::Frame&)>& use) {
  media::Decoder decoder(from.path, from.decode);
  decoder.seek(begin);
  for (media::Frame frame; decoder.next(frame) && frame.pts < end;)
    use(frame);
}

SmartCut::SmartCut(const SmartStart& start, const media::EncodeOptions& options)
    : start_(start), options_(options) {
  if (options_.encoder != start.encoder) options_.preset.clear();  // it was for the other encoder
  options_.encoder = start.encoder;
  options_.splice = start.kind;
}

void SmartCut::check_kind(const media::Frame& frame) {
  if (frame.interlaced) fail("the source is interlaced");
  if (!first_) {
    first_ = frame;
    first_->owner.reset();
  }
  if (frame.layout != first_->layout || frame.width != first_->width ||
      frame.height != first_->height || frame.full_range != first_->full_range ||
      frame.color != first_->color)
    fail("the source's pictures change in size or colours");
  if (frame.width != options_.width || frame.height != options_.height)
    fail("the source's pictures are not as large as it says");
}

void SmartCut::add(const media::Frame& frame) {
  check_kind(frame);
  if (is_head(frame)) {
    if (!head_) head_.emplace(options_);
    ++head_frames_;
    return head_->add(frame);
  }
  if (!key_frame_) key_frame_ = frame;
  last_.push_back(frame);
  if (last_.size() > kWaiting) last_.pop_front();
}

media::CodedVideo SmartCut::make_tail(std::span<const std::int64_t> times, std::int64_t end) {
  if (times.empty()) return {};
  media::VideoEncoder encoder(options_);
  std::size_t count = 0;
  const auto use = [&](const media::Frame& frame) {
    if (count == times.size() || frame.pts != times[count])
      fail("decoded once more the source has other frames");
    check_kind(frame);
    encoder.add(frame);
    ++count;
  };
  if (times.size() <= last_.size())
    for (std::size_t i = last_.size() - times.size(); i < last_.size(); ++i)
      use(last_[i]);
  else
    decode_again(start_, times[0], end, use);
  if (count != times.size()) fail("decoded once more the source has other frames");
  return encoder.finish_piece();
}

std::string SmartCut::finish(std::span<const std::int64_t> later, const media::CopiedVideo& copied,
                             std::int64_t end, const media::AudioTrack& audio) {
  if (!key_frame_) {
    head_->add_audio(audio);
    return head_->finish();
  }
  if (copied.video.empty()) throw Error(copied.reason);
  if (key_frame_->pts != *start_.key) fail("its key frame is not shown");
  copied_frames_ = static_cast<std::int64_t>(copied.frames);
  const media::CodedVideo tail = make_tail(later.subspan(copied.frames), end);
  media::CodedVideo head;
  if (head_) head = head_->finish_piece();
  // Head and tail have the same format, so one of them is checked.
  const std::string flaw =
      media::check_splice(copied.video, *key_frame_, head.empty() ? tail : head);
  if (!flaw.empty()) throw Error(flaw);
  return media::splice_mp4(head, copied.video, tail, end, audio);
}

}  // namespace vfm::clip
