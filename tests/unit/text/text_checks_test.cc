// What a text tells of itself: sentences, repetition, scripts, its end.
// SPDX-License-Identifier: Apache-2.0
#include "text/text_checks.h"

#include <catch2/catch.hpp>

using namespace vfm;

TEST_CASE("sentences end where Unicode says") {
  using Texts = std::vector<std::string>;
  CHECK(text::sentences("A fox runs. It stops!  Why?", 9) ==
        Texts{"A fox runs.", "It stops!", "Why?"});
  CHECK(text::sentences("赤い円。青い四角。", 9) == Texts{"赤い円。", "青い四角。"});
  CHECK(text::sentences("At 2.5 s no end", 9) == Texts{"At 2.5 s no end"});
  CHECK(text::sentences("One. Two. Three.", 2) == Texts{"One.", "Two. Three."});
  CHECK(text::sentences("  ", 9).empty());
  CHECK(text::sentences("", 9).empty());
}

TEST_CASE("a text that repeats runs of three words is repetitive") {
  CHECK(text::check_text("a b c").repetition == 0);
  CHECK(text::check_text("A red fox runs over the snow.").repetition == 0);
  // Six runs, of which "a b c", "b c a" and "c a b" come twice.
  CHECK(text::check_text("a b c A B c a b").repetition == Approx(0.5));
  CHECK(text::check_text("no no no no no no no no no no no no").repetition == Approx(0.9));
}

TEST_CASE("what does not belong to a text's script is counted") {
  const text::TextChecks latin = text::check_text("A fox, 3 m long.");
  CHECK(latin.script == "Latin");
  CHECK(latin.clean == 1);
  CHECK(latin.ended);
  const text::TextChecks mixed = text::check_text("abcd кот");
  CHECK(mixed.script == "Latin");
  CHECK(mixed.clean == Approx(4.0 / 7));
  CHECK_FALSE(mixed.ended);
  const text::TextChecks japanese = text::check_text("赤い円がゆっくり動く。");
  CHECK(japanese.script == "Hiragana");
  CHECK(japanese.clean == 1);
  CHECK(japanese.ended);
  CHECK(text::check_text("ab\xef\xbf\xbd\xee\x80\x80").clean == Approx(0.5));
  CHECK(text::check_text("He said \"stop.\" ").ended);
  CHECK(text::check_text("").clean == 0);
  CHECK(text::check_text("").script.empty());
  CHECK(text::check_text("123.").script.empty());
}
