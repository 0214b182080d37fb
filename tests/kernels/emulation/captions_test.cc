// Models that see and write on the GPU, as the emulation runs it, against the CPU: tiny ones from
// folders.
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "models/vlm/caption_model.h"
#include "ops/determinism.h"
#include "ops/matmul/matmul_kernels.h"
#include "support/noise_picture.h"
#include "support/temporary_folder.h"
#include "tensor/device.h"

using namespace vfm;
using models::CaptionModel;

namespace {

struct Way {
  std::string folder;
  DType compute;
  bool int8;
};

/// llama.cpp's weights beside what else Hugging Face's folder has.
const std::string& gguf_folder() {
  static const TemporaryFolder folder;
  static const bool made = [] {
    const std::filesystem::path golden = VFM_GOLDEN;
    for (const auto& file : std::filesystem::directory_iterator(golden / "qwen/untied"))
      if (file.path().filename().string().find("safetensors") == std::string::npos)
        std::filesystem::copy(file.path(), folder.path);
    for (const auto& file : std::filesystem::directory_iterator(golden / "gguf/model"))
      std::filesystem::copy(file.path(), folder.path,
                            std::filesystem::copy_options::overwrite_existing);
    return true;
  }();
  static_cast<void>(made);
  return folder.path;
}

CaptionModel open(const Way& way, Device device) {
  ops::set_deterministic(true);  // as vfm-caption has it
  const bool qwen = !way.folder.starts_with("smol");
  return CaptionModel(
      way.folder == "gguf" ? gguf_folder() : std::string(VFM_GOLDEN) + "/" + way.folder,
      way.compute, qwen ? std::optional(4) : std::nullopt, way.int8, device);
}

models::SeenFrames seen_by(const CaptionModel& model, std::uint32_t count) {
  models::SeenFrames seen;
  seen.width = 40;
  seen.height = 30;
  seen.still = count == 1;
  seen.seconds = 0.5 * count;
  for (std::uint32_t i = 0; i < count; ++i) {
    seen.frames.push_back(
        model.prepare(NoisePicture(40, 30, i).view, seen.still ? 0 : std::size_t{count}));
    seen.times.push_back(0.5 * i);
  }
  return seen;
}

}  // namespace

TEST_CASE("what a GPU says of a text is what the CPU says") {
  const Way way =
      GENERATE(Way{"qwen/untied", DType::f32, false}, Way{"qwen/tied", DType::bf16, false},
               Way{"qwen/untied", DType::f32, true}, Way{"smolvlm/smolvlm", DType::f32, false},
               Way{"smolvlm/idefics3", DType::bf16, false}, Way{"gguf", DType::f32, false});
  INFO(way.folder << ", " << static_cast<int>(way.compute) << ", " << way.int8);
  const CaptionModel here = open(way, Device::cpu), there = open(way, Device::cuda);
  const double margin = way.compute == DType::f32 ? 2e-4 : 0.1;
  for (const std::uint32_t frames : {4u, 1u}) {
    const models::SeenFrames seen = seen_by(here, frames);
    for (const models::SeenFrames* about :
         {&seen, static_cast<const models::SeenFrames*>(nullptr)}) {
      const auto expected = here.log_probabilities(about, "What?", "a red thing moves");
      const auto found = there.log_probabilities(about, "What?", "a red thing moves");
      REQUIRE(found.size() == expected.size());
      REQUIRE_FALSE(found.empty());
      for (std::size_t i = 0; i < found.size(); ++i)
        CHECK(found[i] == Approx(expected[i]).margin(margin));
    }
  }
  CHECK_FALSE(here.config().contains("device"));
  CHECK(there.config().at("device") == "cuda");
}

TEST_CASE("what else is asked changes no bit of a text on a GPU") {
  const Way way =
      GENERATE(Way{"qwen/untied", DType::bf16, false}, Way{"smolvlm/smolvlm", DType::f32, false});
  const CaptionModel model = open(way, Device::cuda);
  std::vector<models::SeenFrames> seen;
  for (const std::uint32_t frames : {4u, 2u, 1u})
    seen.push_back(seen_by(model, frames));
  std::vector<models::Question> questions;
  for (const models::SeenFrames& one : seen)
    for (const char* prompt : {"What?", "Say more of it"}) {
      models::AnswerRule rule;
      rule.most_tokens = static_cast<int>(3 + 2 * questions.size());
      rule.choice.temperature = questions.size() % 2 == 0 ? 0 : 1;
      questions.push_back({&one, prompt, rule, "key", true});
    }
  const std::vector<models::Answer> together = model.answer_many(questions);
  for (std::size_t i = 0; i < questions.size(); ++i) {
    const models::Answer alone = model.answer_many(std::span(&questions[i], 1)).front();
    REQUIRE_FALSE(alone.error);
    CHECK(alone.text == together[i].text);
    CHECK(alone.ids == together[i].ids);
    CHECK(alone.log_probabilities == together[i].log_probabilities);
  }
}

TEST_CASE("memory that a model takes of a GPU is counted") {
  const Way way =
      GENERATE(Way{"qwen/untied", DType::f32, false}, Way{"qwen/untied", DType::bf16, false},
               Way{"qwen/tied", DType::f32, true}, Way{"smolvlm/smolvlm", DType::bf16, false},
               Way{"gguf", DType::bf16, false});
  INFO(way.folder << ", " << static_cast<int>(way.compute) << ", " << way.int8);
  const std::size_t before = cuda_memory().current;
  const CaptionModel model = open(way, Device::cuda);
  const std::size_t after = cuda_memory().current;
  CHECK(model.weights().own == after - before);
  const models::SeenFrames seen = seen_by(model, 4);
  models::AnswerRule rule;
  rule.most_tokens = 3;
  const models::Question question{&seen, "What?", rule, "k"};
  reset_cuda_peak();
  const models::Answer answer = model.answer(seen, "What?", rule, "k");
  const auto peak = static_cast<double>(cuda_memory().peak - after);
  const models::AnswerCost cost = model.cost(question, answer.tokens);
  // The emulation's products need no workspace.
  const std::size_t counted = cost.keys_values + cost.working - ops::kGemmWorkspace;
  CHECK(static_cast<double>(counted) == Approx(peak).epsilon(0.05));
  CHECK(cuda_memory().current == after);
}
