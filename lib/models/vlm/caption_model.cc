// SPDX-License-Identifier: Apache-2.0
#include "models/vlm/caption_model.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <utility>

#include "base/block_format.h"
#include "base/error.h"
#include "base/json.h"
#include "models/vlm/answer_batch.h"
#include "models/vlm/answer_score.h"
#include "models/vlm/caption_family.h"
#include "models/vlm/chat_words.h"
#include "models/vlm/smol_config.h"
#include "ops/matmul/few_rows.h"
#include "tensor/device.h"
#include "tensor/meta.h"

namespace vfm::models {
namespace {

static_assert(kAnswersTogether <= ops::kFewRows);

std::unique_ptr<const CaptionFamily> family_of(const HfComponent& folder,
                                               const OpenCaptioner& how) {
  folder.need_type({kQwenType, kSmolType, kIdefics3Type});
  return folder.type() == kQwenType ? make_qwen_captioner(folder, how)
                                    : make_smol_captioner(folder, how);
}

void check_seen(const SeenFrames& seen) {
  if (seen.frames.empty()) fail("nothing is seen");
  if (!seen.still && !(seen.fps > 0)) fail("frames of a video without a rate");
}

}  // namespace

struct CaptionModel::State {
  HfComponent component;
  std::unique_ptr<const CaptionFamily> family;
  std::vector<std::int32_t> ends;
  std::string hash;
  OpenCaptioner how;
  std::unique_ptr<const AnswersElsewhere> elsewhere;  // null: here
  mutable AnswerBatch batch;
  mutable std::once_flag counted;
  // The same on Device::meta, from when costs are asked for.
  mutable std::unique_ptr<const CaptionFamily> hollow;
  mutable WeightCost weights;

  State(const std::string& folder, const OpenCaptioner& how_in,
        std::unique_ptr<const AnswersElsewhere> elsewhere_in)
      : component(canonical_folder(folder)),
        family(family_of(component, elsewhere_in ? without_weights(how_in) : how_in)),
        ends(words().ends().empty() ? family->ends() : words().ends()),
        hash(component.hash()),
        how(how_in),
        elsewhere(std::move(elsewhere_in)),
        batch(family->model(), ends, kAnswersTogether, all_processors()) {}

  static OpenCaptioner without_weights(OpenCaptioner as) {
    as.device = Device::meta;
    return as;
  }

  /// Makes these.
  void count() const {
    std::call_once(counted, [&] {
      const MetaAccount account(how.device);
      hollow = family_of(component, without_weights(how));
      for (const io::TensorView& tensor : component.weights().tensors())
        weights.stored += tensor.data.size();
      weights.own = account.memory().current;
    });
  }

  const ChatWords& words() const { return family->words(); }

  /// `seen` must outlive its use. Throws Error for what no video is.
  std::shared_ptr<SharedSight> sight_of(const SeenFrames& seen) const {
    check_seen(seen);
    auto sight = std::make_shared<SharedSight>();
    sight->open = [this, &seen] { return family->picture(seen); };
    return sight;
  }

  /// Null: about nothing.
  std::vector<std::int32_t> prompt_of(const SeenFrames* seen, std::string_view prompt) const {
    if (seen == nullptr) return words().prompt_alone(prompt);
    check_seen(*seen);
    return family->prompt(*seen, prompt);
  }

  bool shows(std::span<const std::int32_t> ids) const {
    return std::any_of(ids.begin(), ids.end(),
                       [&](std::int32_t id) { return family->model().stands_for_sight(id); });
  }

  /// Throws Error where prompt and answer are too long for the model.
  TextJob job_of(const Question& question, std::shared_ptr<SharedSight> sight) const {
    const AnswerRule& rule = question.rule;
    std::vector<std::int32_t> ids = family->prompt(*question.seen, question.prompt);
    const auto length = static_cast<std::int64_t>(ids.size());
    if (length + rule.most_tokens > family->positions())
      fail(
          "{} tokens of prompt and video and {} of text are more than the {} that the model takes: "
          "show it fewer or smaller frames",
          length, rule.most_tokens, family->positions());
    return text_job(std::move(ids), std::move(sight), rule, question.key);
  }
};

CaptionModel::CaptionModel(const std::string& folder, DType compute,
                           std::optional<int> frame_tokens, bool int8, Device device,
                           std::unique_ptr<const AnswersElsewhere> elsewhere) {
  if (compute != DType::f32 && compute != DType::bf16)
    fail_usage("a model that writes captions computes in f32 or bf16 alone");
  state_ = as_usage([&] {
    return std::make_unique<State>(folder, OpenCaptioner{compute, frame_tokens, int8, device},
                                   std::move(elsewhere));
  });
}

CaptionModel::~CaptionModel() = default;

Device CaptionModel::device() const {
  return state_->how.device;
}

double CaptionModel::fps() const {
  return state_->family->fps();
}

std::vector<std::int64_t> CaptionModel::plan(std::int64_t frames, double rate, double fps) const {
  return state_->family->plan(frames, rate, fps);
}

std::vector<std::uint8_t> CaptionModel::prepare(const PictureView& picture,
                                                std::size_t frames) const {
  return state_->family->prepare(picture, frames);
}

void CaptionModel::check_prompt(std::string_view prompt) const {
  state_->family->check_prompt(prompt);
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
  if (s.elsewhere) return s.elsewhere->answer_many(questions);
  std::map<const SeenFrames*, std::shared_ptr<SharedSight>> sights;
  std::vector<TextJob> jobs;
  std::vector<std::int64_t> prompt_tokens;
  for (const Question& question : questions) {
    TextJob& job = jobs.emplace_back();
    try {
      std::shared_ptr<SharedSight>& sight = sights[question.seen];
      if (!sight) sight = s.sight_of(*question.seen);
      job = s.job_of(question, sight);
      job.weigh = question.keep_tokens;
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
    answer = {s.words().text(job.written), prompt_tokens[i],
              static_cast<std::int64_t>(job.written.size()), job.cut};
    if (!questions[i].keep_tokens || s.shows(job.written)) continue;
    answer.ids = job.written;
    answer.log_probabilities = job.log_probabilities;
  }
  return answers;
}

std::vector<double> CaptionModel::log_probabilities(const SeenFrames* seen, std::string_view prompt,
                                                    std::string_view text) const {
  const std::vector<std::int32_t> said = state_->words().tokens(text);
  return log_probabilities(seen, prompt, std::span<const std::int32_t>(said));
}

std::vector<double> CaptionModel::log_probabilities(const SeenFrames* seen, std::string_view prompt,
                                                    std::span<const std::int32_t> said) const {
  const State& s = *state_;
  std::vector<std::int32_t> ids = s.prompt_of(seen, prompt);
  if (s.shows(said)) fail("the text has a token that stands for a picture");
  ids.insert(ids.end(), said.begin(), said.end());
  if (static_cast<std::int64_t>(ids.size()) > s.family->positions())
    fail("{} tokens of prompt, video and text are more than the {} that the model takes",
         ids.size(), s.family->positions());
  if (said.empty()) return {};
  if (s.elsewhere) return s.elsewhere->log_probabilities(seen, prompt, said);
  std::vector<QwenPicture> pictures;
  if (seen != nullptr) pictures.push_back(s.family->picture(*seen));
  const std::lock_guard one(all_processors());
  const DeviceTurn gpu = take_turn(s.how.device);
  return answer_log_probabilities(s.family->model(), ids, pictures, said.size());
}

double CaptionModel::pass_flops(const SeenFrames* seen, std::string_view prompt,
                                std::size_t said) const {
  const State& s = *state_;
  const std::vector<std::int32_t> ids = s.prompt_of(seen, prompt);
  s.count();
  const std::lock_guard one(all_processors());
  std::optional<QwenPicture> picture;
  if (seen != nullptr) picture = s.family->picture(*seen);
  return models::pass_flops(s.hollow->model(), ids, picture ? &*picture : nullptr, said);
}

std::string CaptionModel::text(std::span<const std::int32_t> ids) const {
  return state_->words().text(ids);
}

AnswerCost CaptionModel::cost(const Question& question, std::int64_t written) const {
  const State& s = *state_;
  check_seen(*question.seen);
  const TextJob job = s.job_of(question, nullptr);
  s.count();
  const std::lock_guard one(all_processors());  // a picture at a time, as where it is answered
  const QwenPicture picture = s.family->picture(*question.seen);
  return answer_cost(s.hollow->model(), job.ids, &picture, job.most_tokens, written, s.how.device);
}

WeightCost CaptionModel::weights() const {
  state_->count();
  return state_->weights;
}

Json CaptionModel::config() const {
  Json config = {{"name", state_->component.type()},
                 {"path", state_->component.folder()},
                 {"hash", state_->hash},
                 {"words", state_->words().hash()},
                 {"compute", state_->how.compute == DType::bf16 ? "bf16" : "f32"},
                 {"input", state_->family->input()}};
  if (state_->how.device == Device::cuda) config["device"] = "cuda";
  std::set<std::string> blocks;
  for (const io::TensorView& tensor : state_->component.weights().tensors())
    if (block_format(tensor.dtype)) blocks.insert(tensor.dtype);
  for (const std::string& format : blocks)
    config["weights"] = config.contains("weights")
                            ? fmt::format("{} {}", config["weights"].get<std::string>(), format)
                            : format;
  if (state_->how.int8) config["weights"] = "int8";
  return config;
}

}  // namespace vfm::models
