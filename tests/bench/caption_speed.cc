// The times of what captions take with a Qwen2.5-VL or SmolVLM from a folder: looking at a video,
// the prompt, and writing; caption_speed.sh runs it beside transformers.
//
//   caption_speed DIR f32|bf16|int8 ROUNDS TOKENS [NAME [wall|processor]]
//
// int8: matrices are rounded to 8 bits. NAME stands in the lines in place of the type. processor:
// the time is that of all the process's threads.
// The video is 8 pairs of frames of 224 x 224 pixels, 512 tokens, with 32 words; of a SmolVLM 8
// frames of 256 x 256, 128 tokens. TOKENS are written
// by one text alone, and by each of 8 together. Prints one line for each part: the best of the
// rounds.
// SPDX-License-Identifier: Apache-2.0
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "models/vlm/qwen.h"
#include "models/vlm/smol.h"

using namespace vfm;

namespace {

constexpr std::int64_t kWords = 32;
constexpr int kTogether = 8;

bool by_processor_time = false;

double now() {
  if (by_processor_time) return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double seconds_of(const std::function<void()>& work) {
  const double begin = now();
  work();
  return now() - begin;
}

models::QwenPicture noise_video(std::int64_t patch_elements) {
  models::QwenPicture picture;
  picture.sight.grid = {8, 16, 16};
  picture.patches = Tensor({picture.sight.grid.patches(), patch_elements});
  std::uint32_t seed = 1;
  for (float& x : picture.patches.floats()) {
    seed = seed * 1664525 + 1013904223;
    x = static_cast<float>(seed >> 16) / 32768 - 1;
  }
  return picture;
}

/// Seconds in which each of the answers gets `tokens` more.
double write(const std::vector<models::QwenAnswer*>& answers, int tokens) {
  return seconds_of([&] {
    for (int i = 0; i < tokens; ++i) {
      models::QwenAnswer::logits_together(answers);
      models::QwenAnswer::write_together(answers, std::vector<std::int32_t>(answers.size(), 7 + i));
    }
  });
}

struct Opened {
  std::unique_ptr<const models::VisionLanguageModel> model;
  std::int64_t patch_elements = 0;
  int merge = 0;
  std::int32_t token = 0;  // stands for what is seen

  Opened(const models::HfComponent& component, DType compute, bool int8) {
    if (component.type() == models::kSmolType) {
      auto smol = std::make_unique<models::Smol>(component, compute, int8);
      const models::SmolConfig& config = smol->config();
      patch_elements = std::int64_t{3} * config.vision.patch * config.vision.patch;
      merge = config.merge;
      token = config.image_token;
      model = std::move(smol);
      return;
    }
    auto qwen = std::make_unique<models::Qwen>(component, compute, int8);
    patch_elements = qwen->config().vision.patch_elements();
    merge = qwen->config().vision.merge;
    token = qwen->config().video_token;
    model = std::move(qwen);
  }
};

void run(const char* folder, const std::string& dtype, int rounds, int tokens,
         const std::string& name) {
  const models::HfComponent component(folder);
  const Opened opened(component, dtype == "bf16" ? DType::bf16 : DType::f32, dtype == "int8");
  const models::VisionLanguageModel& model = *opened.model;
  const models::QwenPicture picture = noise_video(opened.patch_elements);
  const std::int64_t seen = picture.sight.grid.tokens(opened.merge);
  std::vector<std::int32_t> ids(static_cast<std::size_t>(seen), opened.token);
  for (std::int32_t i = 0; i < kWords; ++i)
    ids.push_back(100 + i);
  double vision = 1e9, prefill = 1e9, alone = 1e9, together = 1e9;
  for (int round = 0; round < rounds; ++round) {
    Tensor looked;
    vision = std::min(vision, seconds_of([&] { looked = model.look(picture); }));
    std::vector<std::unique_ptr<models::QwenAnswer>> answers;
    std::vector<models::QwenAnswer*> all;
    for (int i = 0; i < kTogether; ++i) {
      prefill = std::min(
          prefill, seconds_of([&] {
            answers.push_back(std::make_unique<models::QwenAnswer>(
                model, ids, std::span(&picture.sight, 1), std::span(&looked, 1), 2 * tokens));
          }));
      all.push_back(answers.back().get());
    }
    alone = std::min(alone, write({all[0]}, tokens));
    together = std::min(together, write(all, tokens));
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto line = [&](const char* part, double count, double seconds) {
    std::printf("vfm %s %s peak %ld MiB tokens/s %.2f\n", name.c_str(), part,
                usage.ru_maxrss / 1024, count / seconds);
  };
  line("vision", static_cast<double>(seen), vision);
  line("prefill", static_cast<double>(ids.size()), prefill);
  line("decode", tokens, alone);
  line("decode-8", kTogether * tokens, together);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5 || argc > 7) return 2;
  by_processor_time = argc == 7 && std::string(argv[6]) == "processor";
  try {
    run(argv[1], argv[2], std::atoi(argv[3]), std::atoi(argv[4]), argv[argc > 5 ? 5 : 2]);
  } catch (const Error& error) {
    std::fprintf(stderr, "caption_speed: %s\n", error.what());
    return 1;
  }
}
