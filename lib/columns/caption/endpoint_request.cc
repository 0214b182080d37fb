// Makes the requests to a server about a clip.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "base/json.h"
#include "columns/caption/endpoint.h"
#include "columns/clip_frames.h"
#include "media/container/picture_file.h"
#include "report/html.h"

namespace vfm::columns {
namespace {

class JpegTaker final : public MiddleFrames {
 public:
  JpegTaker(int count, int side) : MiddleFrames(count), side_(side) {}

  std::vector<std::string> taken;  // as data: URLs

 private:
  void use(const media::Frame& frame, const media::StreamInfo& info) override {
    media::ScaleOptions scale = as_shown(info);
    const int longer = std::max(scale.width, scale.height);
    const double by = longer > side_ ? static_cast<double>(side_) / longer : 1;
    for (int* size : {&scale.width, &scale.height})
      *size = std::max(1, static_cast<int>(std::lround(*size * by)));
    scaler_.to_rgb(frame, scale, image_);
    taken.push_back(report::data_url("image/jpeg", media::encode_jpeg(image_)));
  }
  void clear() override { taken.clear(); }

  int side_;
  media::Scaler scaler_;
  media::RgbImage image_;
};

}  // namespace

std::vector<std::string> Endpoint::requests(const shard::Member& member, const std::string& where,
                                            const Json& known,
                                            const media::HardwareDecoder* hardware,
                                            Json& facts) const {
  JpegTaker taker(options_.frames, options_.side);
  facts = take_frames(member, where, known, hardware, taker);
  if (taker.taken.empty()) fail("{}: no frame of it can be decoded", where);
  Json content = Json::array();
  for (const std::string& frame : taker.taken)
    content.push_back({{"type", "image_url"}, {"image_url", {{"url", frame}}}});
  content.push_back({{"type", "text"}, {"text", options_.prompt}});
  Json body = {{"model", options_.model},
               {"messages", Json::array({{{"role", "user"}, {"content", std::move(content)}}})},
               {"max_tokens", options_.most_tokens},
               {"temperature", options_.temperature},
               {"stream", false}};
  std::vector<std::string> bodies{dump_json(body)};
  for (const Question& question : options_.also.list) {
    body["messages"][0]["content"].back()["text"] = question.prompt;
    body.erase("response_format");
    if (question.schema && options_.send_schema)
      body["response_format"] = {
          {"type", "json_schema"},
          {"json_schema", {{"name", question.name}, {"schema", question.schema->json()}}}};
    bodies.push_back(dump_json(body));
  }
  return bodies;
}

std::string request_with_seed(std::string request, int seed) {
  request.pop_back();
  return request + fmt::format(",\"seed\":{}}}", seed);
}

Json endpoint_config(const EndpointOptions& options) {
  Json config = {{"model", options.model},        {"prompt", options.prompt},
                 {"frames", options.frames},      {"side", options.side},
                 {"tokens", options.most_tokens}, {"temperature", options.temperature}};
  if (!options.also.list.empty()) config["also"] = options.also.to_json(options.temperature);
  if (options.send_schema) config["send_schema"] = true;
  return config;
}

}  // namespace vfm::columns
