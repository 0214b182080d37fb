// How clips are cut into windows that a model is asked about, and how often it looks at one.
// SPDX-License-Identifier: Apache-2.0
#include "columns/caption/model_caption.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <string_view>

#include "base/json.h"
#include "media/container/picture_file.h"
#include "support/noise_picture.h"
#include "tensor/kernel_log.h"

using namespace vfm;
using vfm::columns::count_windows;
using vfm::columns::FrameWindow;
using vfm::columns::nth_window;
using vfm::columns::same_windows;

TEST_CASE("windows cover a clip, and what is left is one where it is half as long") {
  using Windows = std::vector<FrameWindow>;
  const auto plan_windows = [](std::int64_t frames, int window) {
    Windows windows;
    for (std::int64_t i = 0; i < count_windows(frames, window); ++i)
      windows.push_back(nth_window(frames, window, i));
    return windows;
  };
  CHECK(plan_windows(1, 256) == Windows{{0, 1}});
  CHECK(plan_windows(256, 256) == Windows{{0, 256}});
  CHECK(plan_windows(383, 256) == Windows{{0, 383}});
  CHECK(plan_windows(384, 256) == Windows{{0, 256}, {256, 384}});
  CHECK(plan_windows(512, 256) == Windows{{0, 256}, {256, 512}});
  CHECK(plan_windows(600, 256) == Windows{{0, 256}, {256, 600}});
  CHECK(plan_windows(3, 16) == Windows{{0, 3}});
  // What a container promises costs no memory.
  const std::int64_t far = std::int64_t{1} << 60;
  CHECK(count_windows(far, 16) == far / 16);
  CHECK(nth_window(far, 16, far / 16 - 1) == FrameWindow{far - 16, far});
}

TEST_CASE("a model looks at a window once, however much it is asked about it") {
  const models::CaptionModel model(std::string(VFM_GOLDEN) + "/qwen/untied", DType::f32, 4);
  const NoisePicture noise(40, 30, 1);
  const shard::Member member{"png", media::encode_png({40, 30, noise.bytes})};
  columns::ModelCaptionOptions options;
  options.rule.most_tokens = 3;
  const auto ask = [&] {
    return columns::caption_clip(member, "k.png", Json::object(), "k", model, options, nullptr);
  };
  const columns::ModelCaption alone = ask();
  options.also.list = {{"where", "Where is it?"}, {"short", "In ten words?"}};
  const auto looks = [](const KernelLog& log) {
    return std::ranges::count_if(log.entries(), [](const KernelLog::Entry& entry) {
      return std::string_view(entry.call.name) == "activation_forward";  // where it has looked
    });
  };
  const KernelLog log;  // of this thread, which computes: there is no other
  const columns::ModelCaption caption = ask();
  CHECK(looks(log) == 1);
  CHECK(caption.text == alone.text);
  CHECK(caption.also->contains("caption_where"));
  CHECK(caption.also->contains("caption_short"));
  CHECK(caption.cuts == 3);
}

TEST_CASE("what has no answer that fits is asked again together") {
  const models::CaptionModel model(std::string(VFM_GOLDEN) + "/qwen/untied", DType::f32, 4);
  const NoisePicture noise(40, 30, 1);
  const shard::Member member{"png", media::encode_png({40, 30, noise.bytes})};
  columns::ModelCaptionOptions options;
  options.rule.most_tokens = 3;
  options.rule.choice.temperature = 1;
  const auto schema =
      std::make_shared<const text::JsonSchema>(Json{{"type", "object"}}, "the schema");
  options.also.list = {{"a", "Where is it?", schema}, {"b", "In ten words?", schema}};
  options.also.tries = 3;
  const KernelLog log;
  const columns::ModelCaption caption =
      columns::caption_clip(member, "k.png", Json::object(), "k", model, options, nullptr);
  REQUIRE(caption.faults.size() == 2);
  CHECK_THAT(caption.faults[1].message, Catch::Contains("no answer 'b', asked 3 times"));
  CHECK(caption.faults[1].cause == Cause::answer);
  // Looked at, and read up to the words of a question, once each time.
  CHECK(std::ranges::count_if(log.entries(), [](const KernelLog::Entry& entry) {
          return std::string_view(entry.call.name) == "activation_forward";
        }) == 3);
}

TEST_CASE("of a clip with fewer frames than promised, windows that stay the same stay answered") {
  CHECK(same_windows(0, 40, 16, 0) == 0);
  CHECK(same_windows(96, 70, 16, 4) == 3);  // the fourth has all that is left
  CHECK(same_windows(96, 64, 16, 4) == 4);
  CHECK(same_windows(96, 40, 16, 2) == 2);
  CHECK(same_windows(96, 40, 16, 1) == 1);
  CHECK(same_windows(96, 20, 16, 1) == 0);
  CHECK(same_windows(96, 1, 16, 0) == 0);
}
