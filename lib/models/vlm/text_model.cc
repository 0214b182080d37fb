// SPDX-License-Identifier: Apache-2.0
#include "models/vlm/text_model.h"

#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "models/vlm/answer_batch.h"
#include "models/vlm/chat_words.h"
#include "models/vlm/qwen.h"

namespace vfm::models {
namespace {

/// A folder with a model that sees nothing. Throws Error{usage}.
HfComponent text_component(const std::string& folder) {
  HfComponent component(canonical_folder(folder));
  component.need_type({kQwenTextType});
  return component;
}

}  // namespace

struct TextModel::State {
  HfComponent component;
  Qwen model;
  ChatWords words;
  std::vector<std::int32_t> ends;
  std::string hash;
  DType compute;
  bool int8;
  Device device;
  std::unique_ptr<const RewritingElsewhere> elsewhere;  // null: here
  mutable AnswerBatch batch;

  State(const std::string& folder, DType compute_in, bool int8_in, Device device_in,
        std::unique_ptr<const RewritingElsewhere> elsewhere_in)
      : component(text_component(folder)),
        model(component, compute_in, int8_in, elsewhere_in ? Device::meta : device_in),
        words(component.folder(), false),
        ends(words.ends().empty() ? model.config().ends : words.ends()),
        hash(component.hash()),
        compute(compute_in),
        int8(int8_in),
        device(device_in),
        elsewhere(std::move(elsewhere_in)),
        batch(model, ends, kAnswersTogether, all_processors()) {}

  std::vector<std::int32_t> tokens_of(std::string_view instruction, std::string_view text) const {
    const ChatTurn turns[] = {{"system", instruction}, {"user", text}};
    return words.conversation(turns);
  }
};

TextModel::TextModel(const std::string& folder, DType compute, bool int8, Device device,
                     std::unique_ptr<const RewritingElsewhere> elsewhere) {
  if (compute != DType::f32 && compute != DType::bf16)
    fail_usage("a model that writes texts computes in f32 or bf16 alone");
  state_ = as_usage(
      [&] { return std::make_unique<State>(folder, compute, int8, device, std::move(elsewhere)); });
}

TextModel::~TextModel() = default;

void TextModel::check_instruction(std::string_view instruction) const {
  as_usage([&] { return state_->tokens_of(instruction, "?"); });
}

Answer TextModel::answer(std::string_view instruction, std::string_view text,
                         const AnswerRule& rule, std::string_view key) const {
  const State& s = *state_;
  if (s.elsewhere) return s.elsewhere->answer(instruction, text, rule, key);
  std::vector<std::int32_t> ids = s.tokens_of(instruction, text);
  const auto length = static_cast<std::int64_t>(ids.size());
  const int most = s.model.config().text.positions;
  if (length + rule.most_tokens > most)
    fail("{} tokens to read and {} to write are more than the {} that the model takes", length,
         rule.most_tokens, most);
  TextJob job = text_job(std::move(ids), nullptr, rule, key);
  s.batch.run(std::span(&job, 1));
  if (job.error) std::rethrow_exception(job.error);
  return {s.words.text(job.written), length, static_cast<std::int64_t>(job.written.size()),
          job.cut};
}

Json TextModel::config() const {
  Json config = {{"name", state_->component.type()},
                 {"path", state_->component.folder()},
                 {"hash", state_->hash},
                 {"words", state_->words.hash()},
                 {"compute", state_->compute == DType::bf16 ? "bf16" : "f32"}};
  if (state_->device == Device::cuda) config["device"] = "cuda";
  if (state_->int8) config["weights"] = "int8";
  return config;
}

}  // namespace vfm::models
