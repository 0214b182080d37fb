// Texts that are written together are those that are written alone.
// SPDX-License-Identifier: Apache-2.0
#include "models/vlm/answer_batch.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <future>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "models/vlm/caption_model.h"
#include "support/noise_picture.h"
#include "support/one_answer.h"
#include "support/temporary_folder.h"
#include "tensor/kernel_log.h"

using namespace vfm;
using models::CaptionModel;

namespace {

models::SeenFrames seen_by(const CaptionModel& model, int width, int height, std::size_t frames,
                           std::uint32_t seed) {
  models::SeenFrames seen;
  seen.width = width;
  seen.height = height;
  for (std::size_t i = 0; i < frames; ++i)
    seen.frames.push_back(model.prepare(
        NoisePicture(width, height, seed + static_cast<std::uint32_t>(i)).view, frames));
  return seen;
}

struct Asked {
  models::SeenFrames seen;
  models::AnswerRule rule;
  std::string key;
};

/// Clips of many lengths, texts of many lengths, of which some are drawn.
std::vector<Asked> many_questions(const CaptionModel& model) {
  std::vector<Asked> asked;
  for (std::uint32_t i = 0; i < 11; ++i) {
    Asked one{seen_by(model, 20 + static_cast<int>(i), 30, 2 + 2 * (i % 3), 100 * i), {}, {}};
    one.rule.most_tokens = static_cast<int>(1 + (i * 5) % 13);
    if (i % 2 == 1) one.rule.choice.temperature = 1.5;
    one.key = std::to_string(i);
    asked.push_back(std::move(one));
  }
  return asked;
}

}  // namespace

TEST_CASE("tokens that are written together have the logits that each has alone") {
  for (const DType compute : {DType::f32, DType::bf16}) {
    const models::HfComponent folder(std::string(VFM_GOLDEN) + "/qwen/untied");
    const models::Qwen model(folder, compute);
    std::vector<std::unique_ptr<models::QwenAnswer>> alone, together;
    std::vector<models::QwenAnswer*> all;
    for (std::int32_t i = 0; i < 9; ++i) {
      std::vector<std::int32_t> ids;
      for (std::int32_t token = 0; token <= 3 * i; ++token)
        ids.push_back((token * 7 + i) % 90);
      alone.push_back(std::make_unique<models::QwenAnswer>(
          model, ids, std::span<const models::QwenPicture>(), 5));
      together.push_back(std::make_unique<models::QwenAnswer>(
          model, ids, std::span<const models::QwenPicture>(), 5));
      all.push_back(together.back().get());
    }
    for (std::int32_t step = 0; step < 5; ++step) {
      const Tensor logits = models::QwenAnswer::logits_together(all);
      std::vector<std::int32_t> tokens;
      for (std::size_t i = 0; i < all.size(); ++i) {
        const auto row = static_cast<std::int64_t>(i);
        const Tensor own = next_logits(*alone[i]), shared = logits.rows(row, row + 1);
        REQUIRE(own.bytes() == shared.bytes());
        CHECK(std::memcmp(own.raw(), shared.raw(), own.bytes()) == 0);
        tokens.push_back(static_cast<std::int32_t>(i) + step);
        write_token(*alone[i], tokens.back());
      }
      models::QwenAnswer::write_together(all, tokens);
    }
  }
}

TEST_CASE("a token has the logits that it has in a prompt, however weights are kept") {
  for (const std::string name : {"tied", "untied"})
    for (const bool int8 : {false, true}) {
      INFO(name << " " << int8);
      const models::HfComponent folder(std::string(VFM_GOLDEN) + "/qwen/" + name);
      const models::Qwen model(folder, DType::f32, int8), exact(folder, DType::f32);
      std::vector<std::int32_t> ids;
      for (std::int32_t token = 0; token < 40; ++token)
        ids.push_back(token * 5 % 91);
      const std::span<const models::QwenPicture> nothing;
      // Of many rows and of few, products are computed in two ways.
      const Tensor all = all_logits({model, ids, nothing, 0}, ids.size());
      const Tensor stored = all_logits({exact, ids, nothing, 0}, ids.size());
      models::QwenAnswer answer(model, std::span(ids).first(1), nothing, 40);
      double farthest = 0, rounding = 0;
      for (std::int64_t i = 0; i < 40; ++i) {
        const Tensor own = next_logits(answer);
        for (std::int64_t v = 0; v < own.elements(); ++v) {
          const double whole = all.data<float>()[i * own.elements() + v];
          farthest = std::max(farthest, std::abs(whole - own.data<float>()[v]));
          rounding =
              std::max(rounding, std::abs(whole - stored.data<float>()[i * own.elements() + v]));
        }
        if (i < 39) write_token(answer, ids[static_cast<std::size_t>(i) + 1]);
      }
      CHECK(farthest < 1e-3);
      CHECK((rounding > 0) == int8);
      CHECK(rounding < 3);
    }
}

TEST_CASE("answers are the same alone, of one call, and of many threads") {
  const CaptionModel model(std::string(VFM_GOLDEN) + "/qwen/untied", DType::f32, 4);
  const std::vector<Asked> asked = many_questions(model);
  std::vector<models::Question> questions;
  std::vector<models::Answer> alone;
  for (const Asked& one : asked) {
    questions.push_back({&one.seen, "What?", one.rule, one.key});
    alone.push_back(model.answer(one.seen, "What?", one.rule, one.key));
  }
  const auto same = [](const models::Answer& a, const models::Answer& b) {
    return a.text == b.text && a.tokens == b.tokens && a.prompt_tokens == b.prompt_tokens &&
           a.cut == b.cut;
  };
  const std::vector<models::Answer> one_call = model.answer_many(questions);
  std::vector<models::Answer> threads(asked.size());
  {
    std::vector<std::jthread> running;
    for (std::size_t i = 0; i < asked.size(); ++i)
      running.emplace_back([&, i] {
        threads[i] = model.answer(asked[i].seen, "What?", asked[i].rule, asked[i].key);
      });
  }
  for (std::size_t i = 0; i < asked.size(); ++i) {
    INFO(i);
    CHECK(alone[i].tokens <= asked[i].rule.most_tokens);
    CHECK(same(one_call[i], alone[i]));
    CHECK(same(threads[i], alone[i]));
  }
  CHECK(alone[0].text != alone[4].text);
}

TEST_CASE("several questions about the same frames, and one of them that cannot be asked") {
  const CaptionModel model(std::string(VFM_GOLDEN) + "/qwen/untied", DType::f32, 4);
  const models::SeenFrames seen = seen_by(model, 30, 20, 4, 7);
  models::AnswerRule rule;
  rule.most_tokens = 6;
  const std::vector<models::Question> questions{{&seen, "What?", rule, "a"},
                                                {&seen, "Where is it?", rule, "a"}};
  const std::vector<models::Answer> answers = model.answer_many(questions);
  CHECK(answers[0].text == model.answer(seen, "What?", rule, "a").text);
  CHECK(answers[1].text == model.answer(seen, "Where is it?", rule, "a").text);
  CHECK(answers[1].prompt_tokens > answers[0].prompt_tokens);
  {
    const KernelLog log;  // of this thread, which computes
    model.answer_many(questions);
    const auto attended = std::count_if(log.entries().begin(), log.entries().end(),
                                        [](const KernelLog::Entry& entry) {
                                          return std::string_view(entry.call.name) == "attend";
                                        });
    // Three blocks look. Two layers read what the questions have in common, and the words of each.
    CHECK(attended == 3 + 2 * (1 + 2));
  }
  models::SeenFrames wrong = seen;
  wrong.frames[1].pop_back();
  models::AnswerRule endless = rule;
  endless.most_tokens = 1 << 20;
  const models::SeenFrames nothing;
  const std::vector<models::Question> some_wrong{{&wrong, "What?", rule, "a"},
                                                 {&seen, "What?", endless, "a"},
                                                 {&nothing, "What?", rule, "a"},
                                                 {&seen, "What?", rule, "a"}};
  const std::vector<models::Answer> of_some = model.answer_many(some_wrong);
  const char* const why[] = {"a frame is not", "that the model takes", "nothing is seen"};
  for (std::size_t i = 0; i < 3; ++i) {
    REQUIRE(of_some[i].error);
    CHECK_THROWS_WITH(std::rethrow_exception(of_some[i].error), Catch::Contains(why[i]));
    const models::Question& one = some_wrong[i];
    CHECK_THROWS_WITH(model.answer(*one.seen, one.prompt, one.rule, one.key),
                      Catch::Contains(why[i]));
  }
  CHECK_FALSE(of_some[3].error);
  CHECK(of_some[3].text == answers[0].text);
}

TEST_CASE("questions whose prompts end with what is seen are answered beside each other, too") {
  const TemporaryFolder folder;
  std::filesystem::copy(std::string(VFM_GOLDEN) + "/qwen/untied", folder.path);
  folder.write("chat_template.jinja",
               "{% for message in messages %}{% for content in message['content'] %}"
               "{% if 'text' in content %}{{ content['text'] }}{% endif %}{% endfor %}"
               "{% for content in message['content'] %}{% if content['type'] == 'image' %}"
               "<|image_pad|>{% elif content['type'] == 'video' %}<|video_pad|>{% endif %}"
               "{% endfor %}{% endfor %}");
  const CaptionModel model(folder.path, DType::f32, 4);
  const models::SeenFrames seen = seen_by(model, 30, 20, 4, 7);
  models::AnswerRule rule;
  rule.most_tokens = 6;
  const std::vector<models::Question> questions{
      {&seen, "What?", rule, "a"}, {&seen, "Where is it?", rule, "a"}, {&seen, "What?", rule, "a"}};
  const std::vector<models::Answer> answers = model.answer_many(questions);
  for (std::size_t i = 0; i < questions.size(); ++i) {
    REQUIRE_FALSE(answers[i].error);
    CHECK(answers[i].text == model.answer(seen, questions[i].prompt, rule, "a").text);
  }
}

TEST_CASE("a question that fails costs no other one that is answered beside it") {
  const CaptionModel model(std::string(VFM_GOLDEN) + "/qwen/untied", DType::f32, 4);
  const std::vector<Asked> asked = many_questions(model);
  std::vector<models::Answer> answers(asked.size());
  std::vector<int> failed(asked.size());
  {
    std::vector<std::jthread> running;
    for (std::size_t i = 0; i < asked.size(); ++i)
      running.emplace_back([&, i] {
        models::SeenFrames seen = asked[i].seen;
        if (i % 3 == 1) seen.frames[0].pop_back();
        try {
          answers[i] = model.answer(seen, "What?", asked[i].rule, asked[i].key);
        } catch (const Error&) {
          failed[i] = 1;
        }
      });
  }
  for (std::size_t i = 0; i < asked.size(); ++i) {
    CHECK(failed[i] == (i % 3 == 1));
    if (i % 3 != 1)
      CHECK(answers[i].text ==
            model.answer(asked[i].seen, "What?", asked[i].rule, asked[i].key).text);
  }
}

#ifndef __clang__  // whose OpenMP library may keep them
TEST_CASE("threads that have computed for others keep no helpers") {
  const CaptionModel model(std::string(VFM_GOLDEN) + "/qwen/untied", DType::f32, 4);
  const models::SeenFrames seen = seen_by(model, 300, 200, 4, 7);
  models::AnswerRule rule;
  rule.most_tokens = 2;
  const auto threads = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/task"),
                         std::filesystem::directory_iterator());
  };
  const auto before = threads();
  std::promise<void> end;
  const std::shared_future<void> ended = end.get_future().share();
  {
    std::vector<std::promise<void>> answered(5);
    std::vector<std::jthread> running;
    for (std::promise<void>& one : answered) {
      running.emplace_back([&] {
        model.answer(seen, "What?", rule, "a");
        one.set_value();
        ended.wait();
      });
      one.get_future().wait();
    }
    // They end by themselves, a moment later.
    const auto last = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (threads() > before + 5 && std::chrono::steady_clock::now() < last)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    CHECK(threads() <= before + 5);
    end.set_value();
  }
}
#endif
