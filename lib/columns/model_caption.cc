// SPDX-License-Identifier: Apache-2.0
#include "columns/model_caption.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/rounding.h"
#include "columns/clip_frames.h"
#include "media/scaler.h"
#include "text/unicode.h"

namespace vfm::columns {
namespace {

class WindowTaker final : public FrameTaker {
 public:
  WindowTaker(const models::CaptionModel& model, const ModelCaptionOptions& options,
              std::string key)
      : model_(model), options_(options), key_(std::move(key)) {}

  std::int64_t begin(std::int64_t frames, double fps) override {
    rate_ = fps;
    frames_ = frames;
    still_ = frames == 1;
    count_ = count_windows(frames, options_.window);
    answers_.clear();
    open_window();
    const FrameWindow last = window(count_ - 1);
    return last.begin + model_.plan(last.end - last.begin, rate_, options_.fps).back();
  }

  void take(std::int64_t number, const media::Frame& frame,
            const media::StreamInfo& info) override {
    if (answered() == count_ || plan_[seen_.frames.size()] != number) return;
    scaler_.to_rgb(frame, as_shown(info), image_);
    seen_.width = image_.width;
    seen_.height = image_.height;
    seen_.frames.push_back(
        model_.prepare({image_.width, image_.height, image_.pixels}, still_ ? 0 : plan_.size()));
    if (seen_.frames.size() < plan_.size()) return;
    answers_.push_back(model_.answer(seen_,
                                     still_ ? options_.picture_prompt : options_.video_prompt,
                                     options_.rule, fmt::format("{}\n{}", key_, answers_.size())));
    if (answered() < count_) open_window();
  }

  void give_up() override { answers_.clear(); }

  /// Throws Error if the clip had fewer frames than it said.
  ModelCaption result() const {
    if (answers_.empty() || answered() != count_) fail("its frames cannot be decoded to the end");
    ModelCaption caption;
    Json parts = Json::array();
    for (std::size_t i = 0; i < answers_.size(); ++i) {
      const std::string text = text::clean_line(answers_[i].text);
      if (!caption.text.empty() && !text.empty()) caption.text += ' ';
      caption.text += text;
      const auto seconds = [&](std::int64_t frame) {
        return six_digits(static_cast<double>(frame) / rate_);
      };
      const FrameWindow of = window(static_cast<std::int64_t>(i));
      parts.push_back({{"start", seconds(of.begin)}, {"end", seconds(of.end)}, {"caption", text}});
      if (answers_[i].cut) parts.back()["cut"] = true;
    }
    caption.cut = parts.size() == 1 && answers_[0].cut;
    if (parts.size() > 1) caption.windows = std::move(parts);
    return caption;
  }

 private:
  FrameWindow window(std::int64_t i) const { return nth_window(frames_, options_.window, i); }
  std::int64_t answered() const { return static_cast<std::int64_t>(answers_.size()); }

  void open_window() {
    const FrameWindow next = window(answered());
    plan_ = model_.plan(next.end - next.begin, rate_, options_.fps);
    seen_ = {};
    seen_.still = still_;
    seen_.fps =
        static_cast<double>(plan_.size()) / static_cast<double>(next.end - next.begin) * rate_;
    for (std::int64_t& frame : plan_)
      frame += next.begin;
  }

  const models::CaptionModel& model_;
  const ModelCaptionOptions& options_;
  std::string key_;
  double rate_ = 0;
  bool still_ = false;
  std::int64_t frames_ = 0, count_ = 0;  // of the clip; of its windows
  std::vector<std::int64_t> plan_;       // of the window whose frames are taken
  models::SeenFrames seen_;
  std::vector<models::Answer> answers_;
  media::Scaler scaler_;
  media::RgbImage image_;
};

}  // namespace

std::int64_t count_windows(std::int64_t frames, int window) {
  const std::int64_t whole = frames / window, left = frames % window;
  return std::max<std::int64_t>(1, whole + (2 * left >= window ? 1 : 0));
}

FrameWindow nth_window(std::int64_t frames, int window, std::int64_t i) {
  const bool last = i + 1 == count_windows(frames, window);
  return {i * window, last ? frames : (i + 1) * window};
}

ModelCaption caption_clip(const shard::Member& member, const std::string& where, const Json& known,
                          const std::string& key, const models::CaptionModel& model,
                          const ModelCaptionOptions& options,
                          const media::HardwareDecoder* hardware) {
  WindowTaker taker(model, options, key);
  Json facts = take_frames(member, where, known, hardware, taker);
  ModelCaption caption = taker.result();
  caption.facts = std::move(facts);
  return caption;
}

Json model_caption_config(const models::CaptionModel& model, const ModelCaptionOptions& options) {
  Json config = model.config();
  config["fps"] = options.fps;
  config["window"] = options.window;
  config["prompt"] = options.video_prompt;
  config["picture_prompt"] = options.picture_prompt;
  config["max_tokens"] = options.rule.most_tokens;
  config["repetition_penalty"] = options.rule.choice.repetition_penalty;
  config["temperature"] = options.rule.choice.temperature;
  if (options.rule.choice.temperature > 0) {
    config["top_p"] = options.rule.choice.top_p;
    config["seed"] = options.rule.seed;
  }
  return config;
}

}  // namespace vfm::columns
