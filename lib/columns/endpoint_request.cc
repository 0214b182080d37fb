// What a server is asked about a clip.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "columns/clip_frames.h"
#include "columns/clip_vector.h"
#include "columns/endpoint.h"
#include "media/jpeg.h"
#include "report/html.h"

namespace vfm::columns {
namespace {

class JpegTaker final : public FrameTaker {
 public:
  JpegTaker(int count, int side) : count_(count), side_(side) {}

  std::int64_t begin(std::int64_t frames, double /*fps*/) override {
    plan_ = plan_clip_frames(frames, count_);
    taken.clear();
    return plan_.back();
  }

  void take(std::int64_t number, const media::Frame& frame,
            const media::StreamInfo& info) override {
    if (taken.size() == plan_.size() || plan_[taken.size()] != number) return;
    const int longer = std::max(info.display_width, info.display_height);
    const double by = longer > side_ ? static_cast<double>(side_) / longer : 1;
    const auto sized = [&](int size) {
      return std::max(1, static_cast<int>(std::lround(size * by)));
    };
    scaler_.to_rgb(frame,
                   {.rotation = info.rotation,
                    .mirror = info.mirror,
                    .width = sized(info.display_width),
                    .height = sized(info.display_height)},
                   image_);
    taken.push_back(report::data_url("image/jpeg", media::encode_jpeg(image_)));
  }

  void give_up() override { taken.clear(); }

  std::vector<std::string> taken;  // as data: URLs

 private:
  int count_, side_;
  std::vector<std::int64_t> plan_;
  media::Scaler scaler_;
  media::RgbImage image_;
};

}  // namespace

std::string Endpoint::request(const shard::Member& member, const std::string& where,
                              const Json& known, const media::HardwareDecoder* hardware,
                              Json& facts) const {
  JpegTaker taker(options_.frames, options_.side);
  facts = take_frames(member, where, known, hardware, taker);
  if (taker.taken.empty()) fail("{}: no frame of it can be decoded", where);
  Json content = Json::array();
  for (const std::string& frame : taker.taken)
    content.push_back({{"type", "image_url"}, {"image_url", {{"url", frame}}}});
  content.push_back({{"type", "text"}, {"text", options_.prompt}});
  return dump_json({{"model", options_.model},
                    {"messages", Json::array({{{"role", "user"}, {"content", content}}})},
                    {"max_tokens", options_.most_tokens},
                    {"temperature", options_.temperature},
                    {"stream", false}});
}

Json endpoint_config(const EndpointOptions& options) {
  return {{"model", options.model},        {"prompt", options.prompt},
          {"frames", options.frames},      {"side", options.side},
          {"tokens", options.most_tokens}, {"temperature", options.temperature}};
}

}  // namespace vfm::columns
