// SPDX-License-Identifier: Apache-2.0
#include "columns/caption/questions.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "io/text_or_file.h"

namespace vfm::columns {
namespace {

constexpr std::size_t kLongestAnswerName = 40;

/// Names whose field "caption_NAME" has another meaning in the columns of captions and scores.
constexpr std::string_view kTakenNames[] = {
    "also_cut",      "clean",     "cut",     "draft",      "draft_cut",  "ended",
    "fit",           "fit_least", "fits",    "gain",       "gain_least", "logprob",
    "logprob_blind", "model",     "quality", "refined_by", "repetition", "scored_by",
    "script",        "source",    "tokens",  "usage",      "windows"};

struct Named {
  std::string name, value;
};

Named named(const std::string& text, const char* option, const char* form) {
  const std::size_t equals = text.find('=');
  if (equals == text.npos || equals + 1 == text.size())
    fail_usage("{} '{}' is not {}", option, text, form);
  Named one{text.substr(0, equals), text.substr(equals + 1)};
  const bool word =
      !one.name.empty() && one.name.size() <= kLongestAnswerName &&
      one.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == one.name.npos;
  if (!word)
    fail_usage("{} '{}': a name has 1 to {} of a to z, 0 to 9 and _", option, text,
               kLongestAnswerName);
  return one;
}

struct Asked {
  std::vector<Named> prompts, schemas;
};

Asked names_of(const std::vector<std::string>& prompts, const std::vector<std::string>& schemas) {
  Asked asked;
  const auto has = [](const std::vector<Named>& all, const std::string& name) {
    return std::ranges::any_of(all, [&](const Named& one) { return one.name == name; });
  };
  for (const std::string& text : prompts) {
    Named one = named(text, "--also", "NAME=TEXT, such as short='Say it in ten words.'");
    if (std::find(std::begin(kTakenNames), std::end(kTakenNames), one.name) !=
        std::end(kTakenNames))
      fail_usage("--also {}: \"caption_{}\" names another field; take another name", one.name,
                 one.name);
    if (has(asked.prompts, one.name)) fail_usage("--also {} is given twice", one.name);
    asked.prompts.push_back(std::move(one));
  }
  for (const std::string& text : schemas) {
    Named one = named(text, "--schema", "NAME=FILE");
    if (!has(asked.prompts, one.name))
      fail_usage("--schema {}: no question has that name; ask it with --also {}=TEXT", one.name,
                 one.name);
    if (has(asked.schemas, one.name)) fail_usage("--schema {} is given twice", one.name);
    asked.schemas.push_back(std::move(one));
  }
  return asked;
}

}  // namespace

void check_questions(const std::vector<std::string>& prompts,
                     const std::vector<std::string>& schemas) {
  names_of(prompts, schemas);
}

std::vector<FurtherQuestion> parse_questions(const std::vector<std::string>& prompts,
                                             const std::vector<std::string>& schemas) {
  const Asked asked = names_of(prompts, schemas);
  std::vector<FurtherQuestion> questions;
  for (const Named& one : asked.prompts) {
    questions.push_back({one.name, io::text_or_file(one.value)});
  }
  for (const Named& one : asked.schemas) {
    const auto question = std::ranges::find_if(
        questions, [&](const FurtherQuestion& q) { return q.name == one.name; });
    const std::string what = fmt::format("'{}'", one.value);
    question->schema = as_usage([&] {
      return std::make_shared<const text::JsonSchema>(parse_json(io::option_file(one.value), what),
                                                      what);
    });
  }
  return questions;
}

Json Questions::to_json(double temperature) const {
  Json json = Json::object();
  for (const FurtherQuestion& one : list) {
    json[one.name]["prompt"] = one.prompt;
    if (!one.schema) continue;
    json[one.name]["schema"] = hash_hex(dump_json(one.schema->json()));
    if (const int asked = tries_of(one, temperature); asked > 1) json[one.name]["tries"] = asked;
  }
  return json;
}

AnswerValue value_of_answer(const FurtherQuestion& question, const std::string& line,
                            bool keep_empty) {
  if (!question.schema) {
    if (line.empty() && !keep_empty) return {Json(), "it is empty"};
    return {Json(line)};
  }
  try {
    Json value = text::parse_answer(line);
    std::string why = question.schema->misfit(value);
    if (!why.empty()) return {Json(), std::move(why)};
    return {std::move(value)};
  } catch (const Error& error) {
    return {Json(), error.what()};
  }
}

std::string question_fault(const FurtherQuestion& question, const std::string& why, int tries) {
  return fmt::format("no answer '{}'{}: {}", question.name,
                     tries > 1 ? fmt::format(", asked {} times", tries) : "", why);
}

}  // namespace vfm::columns
