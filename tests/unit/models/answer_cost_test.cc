// What answers cost: against a count by hand, and against what a run has in memory.
// SPDX-License-Identifier: Apache-2.0
#include "models/vlm/answer_cost.h"

#include <catch2/catch.hpp>
#include <chrono>
#include <future>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "models/vlm/answer_batch.h"
#include "models/vlm/caption_model.h"
#include "models/vlm/qwen.h"
#include "support/noise_picture.h"
#include "support/one_answer.h"
#include "tensor/allocator.h"
#include "tensor/meta.h"

using namespace vfm;
using models::answer_cost;
using models::AnswerCost;

namespace {

const std::string kCostly = std::string(VFM_GOLDEN) + "/qwen/";

/// Of two seconds.
models::SeenFrames four_frames(const models::CaptionModel& model) {
  models::SeenFrames seen;
  seen.width = 40;
  seen.height = 30;
  seen.seconds = 2;
  for (std::uint32_t i = 0; i < 4; ++i) {
    seen.frames.push_back(model.prepare(NoisePicture(40, 30, i).view, 4));
    seen.times.push_back(0.5 * i);
  }
  return seen;
}

/// A prompt with a video of `grid` in it.
std::vector<std::int32_t> prompt_about(const models::QwenConfig& config,
                                       const models::QwenGrid& grid) {
  std::vector<std::int32_t> ids{1, 2, 3};
  ids.insert(ids.end(), static_cast<std::size_t>(grid.tokens(config.vision.merge)),
             config.video_token);
  ids.insert(ids.end(), {4, 5, 6, 7});
  return ids;
}

models::QwenPicture hollow_picture(const models::QwenConfig& config,
                                   const models::QwenSight& sight) {
  const Shape patches{sight.grid.patches(), config.vision.patch_elements()};
  return {sight, Tensor(patches, DType::f32, Device::meta)};
}

}  // namespace

TEST_CASE("operations of looking, reading and writing are those of a count by hand") {
  const models::HfComponent folder(kCostly + "tied");
  const models::Qwen model(folder, DType::f32, false, Device::meta);
  const models::QwenConfig& config = model.config();
  // Two pairs of frames of 8 x 12 patches: windows of 16 pixels have 4 x 4.
  const models::QwenSight sight{{2, 8, 12}, false, 1};
  const std::vector<std::int32_t> ids = prompt_about(config, sight.grid);
  const models::QwenPicture picture = hollow_picture(config, sight);
  const AnswerCost cost = answer_cost(model, ids, &picture, 9, 3);
  CHECK(cost.prompt_tokens == 55);
  const double patches = 192, width = 16, inner = 20;
  const double block = 2 * patches * (width * 3 * width + width * width + 3 * width * inner);
  const double within = 4 * width * 12 * 16 * 16, across = 4 * width * 2 * 96 * 96;
  const double merger = 2 * 48 * (64 * 64 + 64 * 32);
  CHECK(cost.looked == 2 * patches * 96 * width + 3 * block + 2 * within + across + merger);
  const double layer = 2 * (32 * 32 + 2 * 32 * 16 + 32 * 32 + 3 * 32 * 40);  // of a token
  const double head = 2 * 32 * 297;
  CHECK(cost.read == 2 * (55 * layer + 4 * 32 * 55 * 56 / 2));
  CHECK(cost.head == 2 * (51 * layer + 4 * 32 * 51 * 52 / 2));
  CHECK(cost.written == 3 * (head + 2 * layer) + 2 * 4 * 32 * (56 + 57 + 58));
  // Nothing is seen, and nothing written.
  const AnswerCost text = answer_cost(model, std::vector<std::int32_t>{1, 2}, nullptr, 1, 0);
  CHECK(text.looked == 0);
  CHECK(text.read == 2 * (2 * layer + 4 * 32 * 3));
  CHECK(text.written == 0);
  CHECK(answer_cost(model, std::vector<std::int32_t>{1, 2}, nullptr, 1, 1).written ==
        head + 2 * layer + 2 * 4 * 32 * 3);
}

TEST_CASE("memory that is counted is what looking and reading have at most") {
  struct Kept {
    const char* name;
    DType compute;
    bool int8;
  };
  // Stored as bf16, f16: used as they are, converted, rounded.
  for (const Kept& kept : {Kept{"tied", DType::f32, false}, Kept{"tied", DType::bf16, false},
                           Kept{"untied", DType::bf16, false}, Kept{"untied", DType::f32, true}}) {
    INFO(kept.name << " " << (kept.compute == DType::f32) << " " << kept.int8);
    const models::HfComponent folder(kCostly + kept.name);
    std::optional<models::Qwen> hollow;
    std::size_t own = 0;
    {
      const MetaAccount account(Device::cpu);
      hollow.emplace(folder, kept.compute, kept.int8, Device::meta);
      own = account.memory().current;
    }
    const std::size_t before = cpu_memory().current;
    const models::Qwen model(folder, kept.compute, kept.int8);
    CHECK(cpu_memory().current - before == own);
    CHECK(own > 0);
    const models::QwenSight sight{{3, 16, 20}, false, 1};
    const std::vector<std::int32_t> ids = prompt_about(model.config(), sight.grid);
    const models::QwenPicture picture = hollow_picture(model.config(), sight);
    const AnswerCost cost = answer_cost(*hollow, ids, &picture, 5, 2);
    const auto look_and_read = [&] {
      const std::size_t now = cpu_memory().current;
      reset_memory_peak();
      std::vector<Tensor> seen;
      {
        const Tensor patches =
            Tensor::zeros({sight.grid.patches(), model.config().vision.patch_elements()});
        seen.push_back(model.look({sight, patches}));
      }
      const std::span<const std::int32_t> all = ids;
      models::QwenAnswer answer(model, all.first(ids.size() - 4), std::span(&sight, 1), seen, 9);
      answer.read(all.last(4));
      CHECK(answer.memory_bytes() == cost.keys_values);
      return static_cast<double>(cpu_memory().peak - now);
    };
    // The first time products of bf16 get room that is kept, where the processor has such.
    look_and_read();
    CHECK(static_cast<double>(cost.keys_values + cost.working) ==
          Approx(look_and_read()).epsilon(0.02));
  }
}

TEST_CASE("what a question costs is counted while nothing computes: with one picture in memory") {
  const models::CaptionModel model(kCostly + "untied", DType::f32, 4);
  models::SeenFrames seen;
  seen.width = seen.height = 30;
  for (std::uint32_t i = 0; i < 4; ++i)
    seen.frames.push_back(model.prepare(NoisePicture(30, 30, i).view, 4));
  const models::Question question{&seen, "What?", {.most_tokens = 6}, "k"};
  std::unique_lock computing(models::all_processors());
  std::future<AnswerCost> cost =
      std::async(std::launch::async, [&] { return model.cost(question, 2); });
  CHECK(cost.wait_for(std::chrono::milliseconds(200)) == std::future_status::timeout);
  computing.unlock();
  CHECK(cost.get().looked > 0);
}

TEST_CASE("tokens that an answer keeps are as likely as a pass over them has it") {
  for (const std::string name : {"qwen/untied", "smolvlm/smolvlm"}) {
    const bool qwen = name.starts_with("qwen");
    const models::CaptionModel model(std::string(VFM_GOLDEN) + "/" + name, DType::f32,
                                     qwen ? std::optional(4) : std::nullopt);
    const models::SeenFrames seen = four_frames(model);
    for (const double temperature : {0.0, 1.0}) {
      INFO(name << " " << temperature);
      models::AnswerRule rule;
      rule.most_tokens = 6;
      rule.choice.temperature = temperature;
      rule.choice.repetition_penalty = 1.5;
      models::Question question{&seen, "What?", rule, "k"};
      const models::Answer without = model.answer_many(std::span(&question, 1)).front();
      CHECK(without.ids.empty());
      question.keep_tokens = true;
      const models::Answer answer = model.answer_many(std::span(&question, 1)).front();
      REQUIRE_FALSE(answer.error);
      CHECK(answer.text == without.text);
      REQUIRE(answer.ids.size() == static_cast<std::size_t>(answer.tokens));
      CHECK(model.text(answer.ids) == answer.text);
      const std::vector<double> again = model.log_probabilities(&seen, "What?", answer.ids);
      REQUIRE(again.size() == answer.log_probabilities.size());
      for (std::size_t i = 0; i < again.size(); ++i)
        CHECK(answer.log_probabilities[i] == Approx(again[i]).margin(1e-4));
    }
  }
}

TEST_CASE("a pass over a text costs what its tokens cost, with what is seen and without") {
  const models::HfComponent folder(kCostly + "tied");
  const models::Qwen model(folder, DType::f32, false, Device::meta);
  const models::QwenSight sight{{2, 8, 12}, false, 1};
  const std::vector<std::int32_t> ids = prompt_about(model.config(), sight.grid);
  const models::QwenPicture picture = hollow_picture(model.config(), sight);
  const double layer = 2 * (32 * 32 + 2 * 32 * 16 + 32 * 32 + 3 * 32 * 40);
  const double head = 2 * 32 * 297;
  const double looked = answer_cost(model, ids, &picture, 1, 0).looked;
  CHECK(models::pass_flops(model, ids, &picture, 5) ==
        looked + 2 * (60 * layer + 4 * 32 * 60 * 61 / 2) + 5 * head);
  const std::vector<std::int32_t> alone{1, 2, 3};
  CHECK(models::pass_flops(model, alone, nullptr, 5) ==
        2 * (8 * layer + 4 * 32 * 8 * 9 / 2) + 5 * head);
  CHECK(models::pass_flops(model, alone, nullptr, 0) == 0);
}

TEST_CASE("models tell what a question costs that they answer") {
  for (const std::string name : {"qwen/untied", "smolvlm/smolvlm"}) {
    INFO(name);
    const bool qwen = name.starts_with("qwen");
    const models::CaptionModel model(std::string(VFM_GOLDEN) + "/" + name, DType::f32,
                                     qwen ? std::optional(4) : std::nullopt);
    const models::SeenFrames seen = four_frames(model);
    models::AnswerRule rule;
    rule.most_tokens = 6;
    const models::Question question{&seen, "What?", rule, "k"};
    const models::Answer answer = model.answer_many(std::span(&question, 1)).front();
    REQUIRE_FALSE(answer.error);
    const AnswerCost cost = model.cost(question, answer.tokens), none = model.cost(question, 0);
    CHECK(cost.prompt_tokens == answer.prompt_tokens);
    CHECK(cost.looked > 0);
    CHECK(cost.head > 0);
    CHECK(cost.read > cost.head);
    CHECK(cost.written > 0);
    CHECK(none.written == 0);
    CHECK(none.read == cost.read);
    CHECK(model.weights().stored > 50'000);
  }
}
