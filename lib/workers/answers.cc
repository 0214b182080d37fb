// SPDX-License-Identifier: Apache-2.0
#include "workers/answers.h"

#include <cstdint>
#include <exception>

#include "base/error.h"
#include "base/json.h"
#include "workers/wire.h"

namespace vfm::workers {
namespace {

constexpr const char* kAnswerWords = "what a worker says of answers";
constexpr std::size_t kAnswerTensors = 3;  // text, tokens and log probabilities of an answer

}  // namespace

Json to_json(const models::AnswerRule& rule) {
  return {{"temperature", rule.choice.temperature},
          {"top_p", rule.choice.top_p},
          {"penalty", rule.choice.repetition_penalty},
          {"most_tokens", rule.most_tokens},
          {"seed", rule.seed}};
}

models::AnswerRule rule_of(const Json& json) {
  models::AnswerRule rule;
  rule.choice = {need_number(json, "temperature", kAnswerWords),
                 need_number(json, "top_p", kAnswerWords),
                 need_number(json, "penalty", kAnswerWords)};
  rule.most_tokens = static_cast<int>(need_integer(json, "most_tokens", kAnswerWords));
  rule.seed = json.at("seed").get<std::uint64_t>();
  return rule;
}

void put_answer(Parcel& to, const models::Answer& answer) {
  Json words = {
      {"prompt_tokens", answer.prompt_tokens}, {"tokens", answer.tokens}, {"cut", answer.cut}};
  std::string text = answer.text;
  try {
    if (answer.error) std::rethrow_exception(answer.error);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::device) throw;
    words["kind"] = static_cast<int>(error.kind());
    words["cause"] = static_cast<int>(error.cause());
    text = error.what();
  }
  to.words["answers"].push_back(std::move(words));
  to.tensors.push_back(bytes_tensor(text));
  to.tensors.push_back(number_bytes(std::span(answer.ids)));
  to.tensors.push_back(number_bytes(std::span(answer.log_probabilities)));
}

models::Answer answer_at(const Parcel& from, std::size_t i) {
  const auto list = from.words->find("answers");
  if (list == from.words->end() || !list->is_array() || i >= list->size() ||
      from.tensors.size() != kAnswerTensors * list->size())
    fail("{}: an answer is missing", kAnswerWords);
  const Json& words = (*list)[i];
  const Tensor* const tensors = &from.tensors[kAnswerTensors * i];
  models::Answer answer;
  answer.text = text_of(tensors[0]);
  if (const auto kind = get_integer(words, "kind")) {
    const Word word{.say = Say::error,
                    .kind = static_cast<ErrorKind>(*kind),
                    .cause = static_cast<Cause>(need_integer(words, "cause", kAnswerWords))};
    answer.error = std::make_exception_ptr(told_error(word, answer.text));
    answer.text.clear();
    return answer;
  }
  answer.prompt_tokens = need_integer(words, "prompt_tokens", kAnswerWords);
  answer.tokens = need_integer(words, "tokens", kAnswerWords);
  answer.cut = get_bool(words, "cut").value_or(false);
  answer.ids = numbers_of<std::int32_t>(tensors[1]);
  answer.log_probabilities = numbers_of<double>(tensors[2]);
  return answer;
}

}  // namespace vfm::workers
