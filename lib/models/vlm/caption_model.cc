// SPDX-License-Identifier: Apache-2.0
#include "models/vlm/caption_model.h"

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/philox.h"
#include "base/stop.h"
#include "models/vlm/answer_score.h"
#include "models/vlm/chat_words.h"
#include "models/vlm/qwen.h"
#include "models/vlm/qwen_input.h"

namespace vfm::models {
namespace {

std::string canonical_folder(const std::string& folder) {
  if (!std::filesystem::exists(folder)) fail_usage("no such model folder: '{}'", folder);
  return std::filesystem::canonical(folder).string();
}

}  // namespace

struct CaptionModel::State {
  HfComponent component;
  Qwen model;
  QwenInput input;
  ChatWords words;
  std::vector<std::int32_t> ends;
  std::string hash;
  DType compute;
  mutable std::mutex turn;

  State(const std::string& folder, DType compute_in, int frame_tokens)
      : component(canonical_folder(folder)),
        model(component, compute_in),
        input(QwenInput::from_folder(component.folder(), model.config().vision)),
        words(component.folder()),
        ends(words.ends().empty() ? model.config().ends : words.ends()),
        hash(component.hash()),
        compute(compute_in) {
    input.frame_tokens = frame_tokens;
  }

  /// The prompt's tokens, with the one that stands for what is seen.
  std::vector<std::int32_t> tokens_of(std::string_view prompt, bool still) const {
    const std::int32_t pad = still ? model.config().image_token : model.config().video_token;
    std::vector<std::int32_t> ids = words.prompt(prompt, still);
    const auto sights = std::count_if(ids.begin(), ids.end(), [&](std::int32_t id) {
      return id == model.config().image_token || id == model.config().video_token;
    });
    if (sights != 1 || std::ranges::find(ids, pad) == ids.end())
      fail_usage(
          "the chat template of '{}' has not one place for the {} beside the prompt '{}', but {}: "
          "does the prompt have a token for it?",
          component.folder(), still ? "picture" : "video", prompt, sights);
    return ids;
  }
};

CaptionModel::CaptionModel(const std::string& folder, DType compute, int frame_tokens) {
  if (compute != DType::f32 && compute != DType::bf16)
    fail_usage("a model that writes captions computes in f32 or bf16 alone");
  state_ = as_usage([&] { return std::make_unique<State>(folder, compute, frame_tokens); });
}

CaptionModel::~CaptionModel() = default;

std::vector<std::int64_t> CaptionModel::plan(std::int64_t frames, double rate, double fps) const {
  return qwen_frames(frames, rate, fps, state_->input.vision.temporal_patch);
}

std::vector<std::uint8_t> CaptionModel::prepare(const PictureView& picture,
                                                std::size_t frames) const {
  return state_->input.prepare(picture, frames);
}

void CaptionModel::check_prompt(std::string_view prompt) const {
  for (const bool still : {false, true})
    state_->tokens_of(prompt, still);
}

Answer CaptionModel::answer(const SeenFrames& seen, std::string_view prompt, const AnswerRule& rule,
                            std::string_view key) const {
  const State& s = *state_;
  const QwenConfig& config = s.model.config();
  if (!seen.still && !(seen.fps > 0)) fail("frames of a video without a rate");
  const PictureSize size =
      s.input.size({seen.height, seen.width}, seen.still ? 0 : seen.frames.size());
  const double seconds = seen.still ? 0 : config.vision.temporal_patch / seen.fps;
  const QwenPicture picture = s.input.patches(seen.frames, size, seen.still, seconds);
  std::vector<std::int32_t> ids = s.tokens_of(prompt, seen.still);
  const std::int32_t pad = seen.still ? config.image_token : config.video_token;
  const std::int64_t own = picture.sight.grid.tokens(config.vision.merge);
  ids.insert(std::ranges::find(ids, pad), static_cast<std::size_t>(own - 1), pad);
  Answer answer;
  answer.prompt_tokens = static_cast<std::int64_t>(ids.size());
  if (answer.prompt_tokens + rule.most_tokens > config.text.positions)
    fail(
        "{} tokens of prompt and video and {} of text are more than the {} that the model takes: "
        "show it fewer or smaller frames",
        answer.prompt_tokens, rule.most_tokens, config.text.positions);

  const Random random(rule.seed, Purpose::caption, 0, random_key(fmt::format("answer\n{}", key)));
  std::vector<std::int32_t> written;
  const std::lock_guard one(s.turn);  // of it all threads compute
  QwenAnswer model_answer(s.model, ids, std::span(&picture, 1), rule.most_tokens);
  answer.cut = true;
  while (static_cast<int>(written.size()) < rule.most_tokens) {
    check_stop();
    const Tensor logits = model_answer.logits();
    const std::int32_t token =
        choose_token(logits.floats(), ids, rule.choice, random.uniform(written.size()));
    if (std::ranges::find(s.ends, token) != s.ends.end()) {
      answer.cut = false;
      break;
    }
    written.push_back(token);
    ids.push_back(token);
    if (static_cast<int>(written.size()) < rule.most_tokens) model_answer.write(token);
  }
  answer.tokens = static_cast<std::int64_t>(written.size());
  answer.text = s.words.text(written);
  return answer;
}

std::vector<double> CaptionModel::log_probabilities(const SeenFrames* seen, std::string_view prompt,
                                                    std::string_view text) const {
  const State& s = *state_;
  const QwenConfig& config = s.model.config();
  std::vector<QwenPicture> pictures;
  std::vector<std::int32_t> ids =
      seen == nullptr ? s.words.prompt_alone(prompt) : s.tokens_of(prompt, seen->still);
  const auto is_pad = [&](std::int32_t id) {
    return id == config.image_token || id == config.video_token;
  };
  if (seen != nullptr) {
    if (!seen->still && !(seen->fps > 0)) fail("frames of a video without a rate");
    const PictureSize size =
        s.input.size({seen->height, seen->width}, seen->still ? 0 : seen->frames.size());
    const double seconds = seen->still ? 0 : config.vision.temporal_patch / seen->fps;
    pictures.push_back(s.input.patches(seen->frames, size, seen->still, seconds));
    const std::int64_t own = pictures[0].sight.grid.tokens(config.vision.merge);
    const auto pad = std::find_if(ids.begin(), ids.end(), is_pad);
    ids.insert(pad, static_cast<std::size_t>(own - 1), std::int32_t{*pad});
  }
  const std::vector<std::int32_t> said = s.words.tokens(text);
  if (std::any_of(said.begin(), said.end(), is_pad))
    fail("the text has a token that stands for a picture");
  ids.insert(ids.end(), said.begin(), said.end());
  if (static_cast<std::int64_t>(ids.size()) > config.text.positions)
    fail("{} tokens of prompt, video and text are more than the {} that the model takes",
         ids.size(), config.text.positions);
  if (said.empty()) return {};
  const std::lock_guard one(s.turn);  // of it all threads compute
  return answer_log_probabilities(s.model, ids, pictures, said.size());
}

Json CaptionModel::config() const {
  return {{"name", state_->component.type()},
          {"path", state_->component.folder()},
          {"hash", state_->hash},
          {"words", state_->words.hash()},
          {"compute", state_->compute == DType::bf16 ? "bf16" : "f32"},
          {"input", state_->input.to_json()}};
}

}  // namespace vfm::models
