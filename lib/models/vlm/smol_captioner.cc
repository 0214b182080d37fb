// SmolVLM, SmolVLM2 and Idefics3 as a family of models that write captions.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/error.h"
#include "base/json.h"
#include "models/vlm/caption_family.h"
#include "models/vlm/smol.h"
#include "models/vlm/smol_input.h"
#include "models/vlm/smol_words.h"

namespace vfm::models {
namespace {

class SmolCaptioner final : public CaptionFamily {
 public:
  SmolCaptioner(const HfComponent& folder, const OpenCaptioner& how)
      : folder_(folder),
        videos_(folder.type() == kSmolType),
        model_(folder, how.compute, how.int8, how.device),
        input_(SmolInput::from_folder(folder.folder(), model_.config())),
        words_(folder.folder()) {
    if (how.frame_tokens)
      fail_usage("'{}' holds a {}, whose frames always have {} tokens: leave out --frame-tokens",
                 folder.folder(), folder.type(), input_.tokens());
    own_template_ = count_parts(words_.chat("?", video_), kSmolVideo) > 0;
  }

  const VisionLanguageModel& model() const override { return model_; }
  const ChatWords& words() const override { return words_; }
  std::int64_t positions() const override { return model_.config().text.positions; }
  double fps() const override { return input_.fps; }
  Json input() const override { return input_.to_json(); }

  /// With the token by which the chat's messages end, where there is one.
  std::vector<std::int32_t> ends() const override {
    std::vector<std::int32_t> ends = model_.config().ends;
    const std::vector<std::int32_t> message = words_.tokens("<end_of_utterance>");
    if (message.size() == 1) ends.push_back(message[0]);
    return ends;
  }

  std::vector<std::int64_t> plan(std::int64_t frames, double rate, double fps) const override {
    return input_.frames(frames, rate, fps);
  }

  std::vector<std::uint8_t> prepare(const PictureView& picture, std::size_t frames) const override {
    return input_.prepare(picture, frames == 0);
  }

  void check_prompt(std::string_view prompt) const override {
    prompt_of(SmolTiles{}, prompt);
    prompt_of(std::vector<double>{0, 1}, 1, prompt);
  }

  std::vector<std::int32_t> prompt(const SeenFrames& seen, std::string_view text) const override {
    if (seen.still) return prompt_of(input_.tiles({seen.height, seen.width}), text);
    if (seen.times.size() != seen.frames.size() || !(seen.seconds > 0))
      fail("frames of a video without their times");
    return prompt_of(seen.times, seen.seconds, text);
  }

  QwenPicture picture(const SeenFrames& seen) const override {
    return input_.patches(seen.frames, seen.still);
  }

 private:
  std::vector<std::int32_t> prompt_of(const SmolTiles& tiles, std::string_view prompt) const {
    const std::string text = words_.chat(prompt, std::vector<std::string_view>{"image"});
    check_places(text, kSmolImage, 1, prompt);
    return checked(
        words_.tokens(replace_parts(text, kSmolImage, smol_picture_text(tiles, input_.tokens()))),
        tiles.count());
  }

  std::vector<std::int32_t> prompt_of(const std::vector<double>& times, double seconds,
                                      std::string_view prompt) const {
    const auto count = static_cast<int>(times.size());
    if (!videos_) {
      const std::string text =
          words_.chat(prompt, std::vector<std::string_view>(times.size(), "image"));
      check_places(text, kSmolImage, times.size(), prompt);
      return checked(words_.tokens(replace_parts(text, kSmolImage,
                                                 smol_picture_text(SmolTiles{}, input_.tokens()))),
                     count);
    }
    const std::string text =
        own_template_ ? words_.chat(prompt, video_) : smol_video_message(prompt);
    check_places(text, kSmolVideo, 1, prompt);
    check_places(text, kSmolImage, 0, prompt);
    return checked(words_.tokens(replace_parts(text, kSmolVideo,
                                               smol_video_text(times, seconds, input_.tokens()))),
                   count);
  }

  void check_places(std::string_view text, std::string_view mark, std::size_t count,
                    std::string_view prompt) const {
    const std::size_t found = count_parts(text, mark);
    if (found != count)
      fail_usage(
          "the chat template of '{}' has not {} of {} for what is seen beside the prompt '{}', but "
          "{}: does the prompt have one?",
          folder_.folder(), count, mark, prompt, found);
  }

  std::vector<std::int32_t> checked(std::vector<std::int32_t> ids, int tiles) const {
    const auto found = std::count(ids.begin(), ids.end(), model_.config().image_token);
    if (found != std::int64_t{tiles} * input_.tokens())
      fail_usage("the tokenizer of '{}' makes {} tokens of number {} of {} times {}",
                 folder_.folder(), found, model_.config().image_token,
                 std::int64_t{tiles} * input_.tokens(), kSmolImage);
    return ids;
  }

  const HfComponent& folder_;
  const bool videos_;
  const std::vector<std::string_view> video_{"video"};
  Smol model_;
  SmolInput input_;
  ChatWords words_;
  bool own_template_ = false;
};

}  // namespace

std::unique_ptr<CaptionFamily> make_smol_captioner(const HfComponent& folder,
                                                   const OpenCaptioner& how) {
  return std::make_unique<SmolCaptioner>(folder, how);
}

}  // namespace vfm::models
