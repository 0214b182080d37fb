// SPDX-License-Identifier: Apache-2.0
#include "models/vlm/caption_model.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <utility>

#include "base/block_format.h"
#include "base/error.h"
#include "base/json.h"
#include "base/philox.h"
#include "models/vlm/answer_batch.h"
#include "models/vlm/answer_score.h"
#include "models/vlm/chat_words.h"
#include "models/vlm/qwen.h"
#include "models/vlm/qwen_input.h"
#include "ops/matmul/few_rows.h"

namespace vfm::models {
namespace {

static_assert(kAnswersTogether <= ops::kFewRows);

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
  bool int8;
  mutable std::mutex turn;  // of whoever computes, by all processors
  mutable AnswerBatch batch;

  State(const std::string& folder, DType compute_in, int frame_tokens, bool int8_in)
      : component(canonical_folder(folder)),
        model(component, compute_in, int8_in),
        input(QwenInput::from_folder(component.folder(), model.config().vision)),
        words(component.folder()),
        ends(words.ends().empty() ? model.config().ends : words.ends()),
        hash(component.hash()),
        compute(compute_in),
        int8(int8_in),
        batch(model, ends, kAnswersTogether, turn) {
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

  PictureSize size_of(const SeenFrames& seen) const {
    return input.size({seen.height, seen.width}, seen.still ? 0 : seen.frames.size());
  }

  /// `seen` must outlive its use. Throws Error for what no video is.
  std::shared_ptr<SharedSight> sight_of(const SeenFrames& seen) const {
    if (seen.frames.empty()) fail("nothing is seen");
    if (!seen.still && !(seen.fps > 0)) fail("frames of a video without a rate");
    const double seconds = seen.still ? 0 : model.config().vision.temporal_patch / seen.fps;
    auto sight = std::make_shared<SharedSight>();
    sight->open = [this, &seen, seconds] {
      return input.patches(seen.frames, size_of(seen), seen.still, seconds);
    };
    return sight;
  }

  /// Throws Error where prompt and answer are too long for the model.
  TextJob job_of(const Question& question, std::shared_ptr<SharedSight> sight) const {
    const QwenConfig& config = model.config();
    const SeenFrames& seen = *question.seen;
    const AnswerRule& rule = question.rule;
    std::vector<std::int32_t> ids = tokens_of(question.prompt, seen.still);
    const std::int32_t pad = seen.still ? config.image_token : config.video_token;
    const std::int64_t own =
        input.tokens(size_of(seen), seen.still ? 1 : static_cast<std::int64_t>(seen.frames.size()));
    ids.insert(std::ranges::find(ids, pad), static_cast<std::size_t>(own - 1), pad);
    const auto length = static_cast<std::int64_t>(ids.size());
    if (length + rule.most_tokens > config.text.positions)
      fail(
          "{} tokens of prompt and video and {} of text are more than the {} that the model takes: "
          "show it fewer or smaller frames",
          length, rule.most_tokens, config.text.positions);
    TextJob job{std::move(ids), std::move(sight), rule.choice, rule.most_tokens, {}};
    job.random.emplace(rule.seed, Purpose::caption, 0,
                       random_key(fmt::format("answer\n{}", question.key)));
    return job;
  }
};

CaptionModel::CaptionModel(const std::string& folder, DType compute, int frame_tokens, bool int8) {
  if (compute != DType::f32 && compute != DType::bf16)
    fail_usage("a model that writes captions computes in f32 or bf16 alone");
  state_ = as_usage([&] { return std::make_unique<State>(folder, compute, frame_tokens, int8); });
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
  const Question one{&seen, prompt, rule, key};
  Answer answer = std::move(answer_many(std::span(&one, 1)).front());
  if (answer.error) std::rethrow_exception(answer.error);
  return answer;
}

std::vector<Answer> CaptionModel::answer_many(std::span<const Question> questions) const {
  const State& s = *state_;
  std::map<const SeenFrames*, std::shared_ptr<SharedSight>> sights;
  std::vector<TextJob> jobs;
  std::vector<std::int64_t> prompt_tokens;
  for (const Question& question : questions) {
    TextJob& job = jobs.emplace_back();
    try {
      std::shared_ptr<SharedSight>& sight = sights[question.seen];
      if (!sight) sight = s.sight_of(*question.seen);
      job = s.job_of(question, sight);
    } catch (const Error&) {
      job.error = std::current_exception();
      job.done = true;
    }
    prompt_tokens.push_back(static_cast<std::int64_t>(job.ids.size()));
  }
  sights.clear();  // a sight goes with its last job
  s.batch.run(jobs);
  std::vector<Answer> answers;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const TextJob& job = jobs[i];
    Answer& answer = answers.emplace_back();
    answer.error = job.error;
    if (job.error) continue;
    answer = {s.words.text(job.written), prompt_tokens[i],
              static_cast<std::int64_t>(job.written.size()), job.cut};
  }
  return answers;
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
    pictures.push_back(s.sight_of(*seen)->open());
    const std::int64_t own = pictures.front().sight.grid.tokens(config.vision.merge);
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
  Json config = {{"name", state_->component.type()},
                 {"path", state_->component.folder()},
                 {"hash", state_->hash},
                 {"words", state_->words.hash()},
                 {"compute", state_->compute == DType::bf16 ? "bf16" : "f32"},
                 {"input", state_->input.to_json()}};
  std::set<std::string> blocks;
  for (const io::TensorView& tensor : state_->component.weights().tensors())
    if (block_format(tensor.dtype)) blocks.insert(tensor.dtype);
  for (const std::string& format : blocks)
    config["weights"] = config.contains("weights")
                            ? fmt::format("{} {}", config["weights"].get<std::string>(), format)
                            : format;
  if (state_->int8) config["weights"] = "int8";
  return config;
}

}  // namespace vfm::models
