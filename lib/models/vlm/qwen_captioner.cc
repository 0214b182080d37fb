// Qwen2.5-VL as a family of models that write captions.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/error.h"
#include "base/json.h"
#include "models/vlm/caption_family.h"
#include "models/vlm/qwen.h"
#include "models/vlm/qwen_input.h"

namespace vfm::models {
namespace {

class QwenCaptioner final : public CaptionFamily {
 public:
  QwenCaptioner(const HfComponent& folder, const OpenCaptioner& how)
      : folder_(folder),
        model_(folder, how.compute, how.int8, how.device),
        input_(QwenInput::from_folder(folder.folder(), model_.config().vision)),
        words_(folder.folder()) {
    input_.frame_tokens = how.frame_tokens.value_or(kMostFrameTokens);
  }

  const VisionLanguageModel& model() const override { return model_; }
  const ChatWords& words() const override { return words_; }
  std::vector<std::int32_t> ends() const override { return model_.config().ends; }
  std::int64_t positions() const override { return model_.config().text.positions; }
  double fps() const override { return 2; }
  Json input() const override { return input_.to_json(); }

  std::vector<std::int64_t> plan(std::int64_t frames, double rate, double fps) const override {
    return qwen_frames(frames, rate, fps, input_.vision.temporal_patch);
  }

  std::vector<std::uint8_t> prepare(const PictureView& picture, std::size_t frames) const override {
    return input_.prepare(picture, frames);
  }

  void check_prompt(std::string_view prompt) const override {
    for (const bool still : {false, true})
      tokens_of(prompt, still);
  }

  std::vector<std::int32_t> prompt(const SeenFrames& seen, std::string_view text) const override {
    std::vector<std::int32_t> ids = tokens_of(text, seen.still);
    const std::int64_t own = input_.tokens(
        size_of(seen), seen.still ? 1 : static_cast<std::int64_t>(seen.frames.size()));
    const std::int32_t pad = pad_of(seen.still);
    ids.insert(std::ranges::find(ids, pad), static_cast<std::size_t>(own - 1), pad);
    return ids;
  }

  QwenPicture picture(const SeenFrames& seen) const override {
    const double seconds = seen.still ? 0 : input_.vision.temporal_patch / seen.fps;
    return input_.patches(seen.frames, size_of(seen), seen.still, seconds);
  }

 private:
  std::int32_t pad_of(bool still) const {
    return still ? model_.config().image_token : model_.config().video_token;
  }

  PictureSize size_of(const SeenFrames& seen) const {
    return input_.size({seen.height, seen.width}, seen.still ? 0 : seen.frames.size());
  }

  /// The prompt's tokens, with the one that stands for what is seen.
  std::vector<std::int32_t> tokens_of(std::string_view prompt, bool still) const {
    std::vector<std::int32_t> ids = words_.prompt(prompt, still);
    const auto sights = std::count_if(ids.begin(), ids.end(),
                                      [&](std::int32_t id) { return model_.stands_for_sight(id); });
    if (sights != 1 || std::ranges::find(ids, pad_of(still)) == ids.end())
      fail_usage(
          "the chat template of '{}' has not one place for the {} beside the prompt '{}', but {}: "
          "does the prompt have a token for it?",
          folder_.folder(), still ? "picture" : "video", prompt, sights);
    return ids;
  }

  const HfComponent& folder_;
  Qwen model_;
  QwenInput input_;
  ChatWords words_;
};

}  // namespace

std::unique_ptr<CaptionFamily> make_qwen_captioner(const HfComponent& folder,
                                                   const OpenCaptioner& how) {
  return std::make_unique<QwenCaptioner>(folder, how);
}

}  // namespace vfm::models
