// SPDX-License-Identifier: Apache-2.0
#include "workers/captions.h"

#include <cstdint>
#include <exception>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "models/folder/hf_folder.h"
#include "ops/gpu_options.h"
#include "workers/answers.h"
#include "workers/gathered.h"

namespace vfm::workers {
namespace {

constexpr const char* kCaptionWords = "what a worker is asked about clips";
/// GPU memory for frames, for keys and values of a batch, and for workspaces. Enough for windows
/// and texts of usual length. Memory of the processor is not reserved.
constexpr std::int64_t kWorkBytes = std::int64_t{4} << 30;
std::int64_t work_bytes(Device device) {
  return device == Device::cuda ? kWorkBytes : 0;
}
constexpr auto kTogether = static_cast<std::size_t>(models::kAnswersTogether);

/// Adds one tensor for each frame to the parcel, and returns the words.
Json put_seen(Parcel& to, const models::SeenFrames& seen) {
  for (const std::vector<std::uint8_t>& frame : seen.frames)
    to.tensors.push_back(number_bytes(std::span(frame)));
  return {{"frames", seen.frames.size()}, {"width", seen.width}, {"height", seen.height},
          {"still", seen.still},          {"fps", seen.fps},     {"times", seen.times},
          {"seconds", seen.seconds}};
}

/// Moves `tensor` past the frames.
models::SeenFrames take_seen(const Json& words, const Parcel& from, std::size_t& tensor) {
  models::SeenFrames seen;
  for (std::int64_t left = need_integer(words, "frames", kCaptionWords); left > 0; --left)
    seen.frames.push_back(numbers_of<std::uint8_t>(from.tensors.at(tensor++)));
  seen.width = static_cast<int>(need_integer(words, "width", kCaptionWords));
  seen.height = static_cast<int>(need_integer(words, "height", kCaptionWords));
  seen.still = words.at("still").get<bool>();
  seen.fps = need_number(words, "fps", kCaptionWords);
  seen.times = words.at("times").get<std::vector<double>>();
  seen.seconds = need_number(words, "seconds", kCaptionWords);
  return seen;
}

/// Questions of one call of CaptionModel::answer_many().
struct AskedOnce {
  std::span<const models::Question> questions;
  std::vector<models::Answer> answers = {};
};

Parcel question_parcel(const std::vector<AskedOnce*>& calls) {
  Parcel parcel{"answer", Json{{"seen", Json::array()}, {"questions", Json::array()}}, {}};
  std::map<const models::SeenFrames*, std::size_t> numbers;
  for (const AskedOnce* const call : calls)
    for (const models::Question& question : call->questions)
      if (numbers.emplace(question.seen, numbers.size()).second)
        parcel.words["seen"].push_back(put_seen(parcel, *question.seen));
  for (const AskedOnce* const call : calls)
    for (const models::Question& question : call->questions) {
      parcel.words["questions"].push_back({{"seen", numbers.at(question.seen)},
                                           {"rule", to_json(question.rule)},
                                           {"keep_tokens", question.keep_tokens}});
      parcel.tensors.push_back(bytes_tensor(question.prompt));
      parcel.tensors.push_back(bytes_tensor(question.key));
    }
  return parcel;
}

void take_answers(const Parcel& parcel, const std::vector<AskedOnce*>& calls) {
  std::size_t i = 0;
  for (AskedOnce* const call : calls)
    for (std::size_t n = 0; n < call->questions.size(); ++n)
      call->answers.push_back(answer_at(parcel, i++));
}

class WorkersAnswers final : public models::AnswersElsewhere {
 public:
  explicit WorkersAnswers(StageModels& models)
      : models_(models), gathered_(models.together(), kTogether) {}

  void set_number(std::size_t number) { number_ = number; }

  std::vector<models::Answer> answer_many(
      std::span<const models::Question> questions) const override {
    AskedOnce own{questions};
    gathered_.run(own, questions.size(), [&](const auto& take) {
      std::vector<AskedOnce*> calls;
      const auto answer = models_.ask_late(number_, [&]() -> std::optional<Parcel> {
        calls = take();
        if (calls.empty()) return std::nullopt;
        return question_parcel(calls);
      });
      if (answer) take_answers(*answer, calls);
    });
    return std::move(own.answers);
  }

  std::vector<double> log_probabilities(const models::SeenFrames* seen, std::string_view prompt,
                                        std::span<const std::int32_t> said) const override {
    Parcel request{"log_probabilities", Json::object(), {}};
    if (seen) request.words["seen"] = put_seen(request, *seen);
    request.tensors.push_back(bytes_tensor(prompt));
    request.tensors.push_back(number_bytes(said));
    const Parcel answer = models_.ask(number_, std::move(request));
    if (answer.tensors.size() != 1) fail("a worker says no probabilities");
    return numbers_of<double>(answer.tensors[0]);
  }

 private:
  StageModels& models_;
  std::size_t number_ = 0;
  mutable Gathered<AskedOnce> gathered_;
};

class CaptionService final : public Service {
 public:
  explicit CaptionService(std::unique_ptr<models::CaptionModel> model) : model_(std::move(model)) {}

  Parcel answer(const Parcel& request) override {
    return request.name == "answer" ? answers(request) : log_probabilities(request);
  }

 private:
  Parcel answers(const Parcel& request) const {
    std::size_t tensor = 0;
    std::vector<models::SeenFrames> seen;
    for (const Json& one : request.words->at("seen"))
      seen.push_back(take_seen(one, request, tensor));
    std::vector<models::Question> questions;
    for (const Json& one : request.words->at("questions")) {
      const std::string_view prompt = text_of(request.tensors.at(tensor++));
      const std::string_view key = text_of(request.tensors.at(tensor++));
      questions.push_back({&seen.at(one.at("seen").get<std::size_t>()), prompt,
                           rule_of(one.at("rule")), key, one.at("keep_tokens").get<bool>()});
    }
    Parcel answer{"", Json{{"answers", Json::array()}}, {}};
    for (const models::Answer& one : model_->answer_many(questions))
      put_answer(answer, one);
    return answer;
  }

  Parcel log_probabilities(const Parcel& request) const {
    std::size_t tensor = 0;
    std::optional<models::SeenFrames> seen;
    if (const auto words = request.words->find("seen"); words != request.words->end())
      seen = take_seen(*words, request, tensor);
    const std::string_view prompt = text_of(request.tensors.at(tensor));
    const auto said = numbers_of<std::int32_t>(request.tensors.at(tensor + 1));
    const std::vector<double> found =
        model_->log_probabilities(seen ? &*seen : nullptr, prompt, std::span(said));
    return {"", Json::object(), {number_bytes(std::span(found))}};
  }

  std::unique_ptr<models::CaptionModel> model_;
};

/// A call of TextModel::answer().
struct Rewriting {
  std::string_view instruction, text, key;
  const models::AnswerRule& rule;
  models::Answer answer = {};
};

class WorkersRewriting final : public models::RewritingElsewhere {
 public:
  WorkersRewriting(StageModels& models, std::size_t number)
      : models_(models), number_(number), gathered_(models.together(), kTogether) {}

  models::Answer answer(std::string_view instruction, std::string_view text,
                        const models::AnswerRule& rule, std::string_view key) const override {
    Rewriting own{instruction, text, key, rule};
    gathered_.run(own, 1, [&](const auto& take) {
      std::vector<Rewriting*> calls;
      const auto answer = models_.ask_late(number_, [&]() -> std::optional<Parcel> {
        calls = take();
        if (calls.empty()) return std::nullopt;
        return question_parcel(calls);
      });
      for (std::size_t i = 0; answer && i < calls.size(); ++i)
        calls[i]->answer = answer_at(*answer, i);
    });
    if (own.answer.error) std::rethrow_exception(own.answer.error);
    return std::move(own.answer);
  }

 private:
  static Parcel question_parcel(const std::vector<Rewriting*>& calls) {
    Parcel parcel{"answer", Json{{"rules", Json::array()}}, {}};
    for (const Rewriting* const call : calls) {
      parcel.words["rules"].push_back(to_json(call->rule));
      for (const std::string_view text : {call->instruction, call->text, call->key})
        parcel.tensors.push_back(bytes_tensor(text));
    }
    return parcel;
  }

  StageModels& models_;
  const std::size_t number_;
  mutable Gathered<Rewriting> gathered_;
};

class RewritingService final : public Service {
 public:
  explicit RewritingService(std::unique_ptr<models::TextModel> model) : model_(std::move(model)) {}

  /// Asks each question in its own thread, since the model forms batches of questions of several
  /// threads.
  Parcel answer(const Parcel& request) override {
    const Json& rules = request.words->at("rules");
    std::vector<models::Answer> answers(rules.size());
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < answers.size(); ++i)
      threads.emplace_back([&, i] {
        try {
          answers[i] = model_->answer(text_of(request.tensors.at(3 * i)),
                                      text_of(request.tensors.at(3 * i + 1)), rule_of(rules.at(i)),
                                      text_of(request.tensors.at(3 * i + 2)));
        } catch (...) {
          answers[i].error = std::current_exception();
        }
      });
    for (std::thread& thread : threads)
      thread.join();
    Parcel answer{"", Json{{"answers", Json::array()}}, {}};
    for (const models::Answer& one : answers)
      put_answer(answer, one);
    return answer;
  }

 private:
  std::unique_ptr<models::TextModel> model_;
};

Parcel open_parcel(const std::string& folder, DType compute, bool int8) {
  return {"", Json{{"compute", dtype_name(compute)}, {"int8", int8}}, {bytes_tensor(folder)}};
}

DType compute_of(const Parcel& open) {
  return need_string(open.words, "compute", kCaptionWords) == dtype_name(DType::bf16) ? DType::bf16
                                                                                      : DType::f32;
}

/// Chooses no matrix product by timing, so that results do not depend on the run.
void fix_products(Device device) {
  if (device == Device::cuda) ops::set_gpu_options(device, true, "auto", "");
}

}  // namespace

std::unique_ptr<models::CaptionModel> captions_in_workers(StageModels& models,
                                                          const std::string& folder, DType compute,
                                                          std::optional<int> frame_tokens,
                                                          bool int8) {
  auto elsewhere = std::make_unique<WorkersAnswers>(models);
  WorkersAnswers& answers = *elsewhere;
  auto model = std::make_unique<models::CaptionModel>(folder, compute, frame_tokens, int8,
                                                      models.device(), std::move(elsewhere));
  Parcel open = open_parcel(folder, compute, int8);
  if (frame_tokens) open.words["frame_tokens"] = *frame_tokens;
  answers.set_number(
      models.add(kCaptions, std::move(open),
                 static_cast<std::int64_t>(model->weights().own) + work_bytes(models.device())));
  return model;
}

std::unique_ptr<models::RewritingElsewhere> rewriting_in_workers(StageModels& models,
                                                                 const std::string& folder,
                                                                 DType compute, bool int8) {
  // With f32, twice the stored bytes, since stored weights may be bf16.
  const std::uint64_t stored =
      models::HfComponent(models::canonical_folder(folder)).weights().bytes();
  const std::uint64_t bytes = (compute == DType::f32 ? 2 : 1) * stored;
  return std::make_unique<WorkersRewriting>(
      models, models.add(kRewriting, open_parcel(folder, compute, int8),
                         static_cast<std::int64_t>(bytes) + work_bytes(models.device())));
}

std::unique_ptr<Service> open_captions(const Parcel& open, Device device) {
  fix_products(device);
  std::optional<int> frame_tokens;
  if (const auto most = get_integer(open.words, "frame_tokens"))
    frame_tokens = static_cast<int>(*most);
  return std::make_unique<CaptionService>(std::make_unique<models::CaptionModel>(
      std::string(text_of(open.tensors.at(0))), compute_of(open), frame_tokens,
      open.words->at("int8").get<bool>(), device));
}

std::unique_ptr<Service> open_rewriting(const Parcel& open, Device device) {
  fix_products(device);
  return std::make_unique<RewritingService>(std::make_unique<models::TextModel>(
      std::string(text_of(open.tensors.at(0))), compute_of(open),
      open.words->at("int8").get<bool>(), device));
}

}  // namespace vfm::workers
