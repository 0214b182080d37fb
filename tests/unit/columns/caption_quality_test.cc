// The numbers of a caption, and what they are combined to.
// SPDX-License-Identifier: Apache-2.0
#include "columns/score/caption_quality.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/json.h"
#include "columns/caption/questions.h"

using namespace vfm;
using columns::CaptionScores;

namespace {

CaptionScores scored(const std::string& caption, double least, double fit) {
  CaptionScores scores;
  scores.text = text::check_text(caption);
  const std::vector<double> with{-0.5, -1 + least}, without{-1.5, -1};
  scores.gain = columns::caption_gain(with, without);
  scores.fits = {fit, 0.5};
  return scores;
}

}  // namespace

TEST_CASE("what a video tells of a caption is the mean and the least over its tokens") {
  const Json fields = scored("A fox.", -3, 0.25).fields();
  CHECK(fields["caption_tokens"] == 2);
  CHECK(fields["caption_logprob"] == -2.25);
  CHECK(fields["caption_logprob_blind"] == -1.25);
  CHECK(fields["caption_gain"] == -1);
  CHECK(fields["caption_gain_least"] == -3);
  CHECK(fields["caption_fits"] == Json::parse("[0.25, 0.5]"));
  CHECK(fields["caption_fit"] == 0.375);
  CHECK(fields["caption_fit_least"] == 0.25);
  CHECK_THROWS_AS(columns::caption_gain(std::vector<double>{-1}, {}), Error);
  CHECK_THROWS_AS(columns::caption_gain({}, {}), Error);
}

TEST_CASE("the quality is the stated function of the fields") {
  constexpr columns::QualityWeights w = columns::kQualityWeights;
  const std::string repeated = "a b c a b c a b c a b c.";
  for (const std::string& text : {std::string("A fox."), std::string("abcd кот"), repeated})
    for (const double least : {-0.5, -50.0}) {
      const Json f = scored(text, least, 0.25).fields();
      const double z = w.bias + w.gain * f["caption_gain"].get<double>() +
                       w.gain_least * std::max(f["caption_gain_least"].get<double>(), -w.floor) +
                       w.fit * 0.375 + w.fit_least * 0.25;
      const double repetition = f["caption_repetition"], clean = f["caption_clean"];
      const double expected =
          (1 - std::max(0.0, repetition - 0.25) / 0.75) * clean / (1 + std::exp(-z));
      CHECK(f["caption_quality"].get<double>() == Approx(expected).margin(2e-6));
    }
  CHECK(scored("A fox.", -0.1, 0.3).fields()["caption_quality"].get<double>() >
        scored("A fox.", -4, 0.3).fields()["caption_quality"].get<double>());
}

TEST_CASE("there is a quality only where all of it is known") {
  CaptionScores scores = scored("A fox.", -1, 0.2);
  scores.gain.reset();
  CHECK(scores.fields().contains("caption_fit"));
  CHECK_FALSE(scores.fields().contains("caption_quality"));
  CHECK_FALSE(scores.fields().contains("caption_gain"));
  scores = scored("A fox.", -1, 0.2);
  scores.fits.clear();
  CHECK(scores.fields().contains("caption_gain"));
  CHECK_FALSE(scores.fields().contains("caption_quality"));
}

TEST_CASE("a sentence fits as well as the frame that it fits best") {
  const std::vector<std::vector<float>> frames{{1, 0}, {0.6f, 0.8f}};
  CHECK(columns::sentence_fits({{0, 1}, {1, 0}, {-1, 0}}, frames) ==
        std::vector<double>{double{0.8f}, 1, double{-0.6f}});
  CHECK(columns::sentence_fits({}, frames).empty());
  CHECK(columns::sentence_fits({{1, 0}}, {}).empty());
  CHECK_THROWS_AS(columns::sentence_fits({{}}, frames), Error);
  const float none = std::numeric_limits<float>::quiet_NaN();
  CHECK_THROWS_AS(columns::sentence_fits({{none, 0}}, frames), Error);
}

TEST_CASE("no question has the name of a score") {
  const Json fields = scored("A fox.", -3, 0.25).fields();
  for (const auto& [field, value] : fields.items()) {
    INFO(field);
    const std::string name = field.substr(std::string("caption_").size());
    CHECK_THROWS_AS(columns::parse_questions({name + "=What?"}, {}), Error);
  }
  CHECK(columns::parse_questions({"topic=What?"}, {})[0].field() == "caption_topic");
}
