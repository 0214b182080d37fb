// SPDX-License-Identifier: Apache-2.0
#include "base/harmless.h"

#include <catch2/catch.hpp>

using vfm::harmless;
using vfm::shortened;

TEST_CASE("what steers a terminal or turns a line becomes a question mark, and no more") {
  CHECK(harmless("a\nb\tc\x1b[2J\x7f"
                 "d") == "a?b?c?[2J?d");
  CHECK(harmless(std::string("a\0b", 3)) == "a?b");
  CHECK(harmless(" ~\u00a0\u00ff") == " ~\u00a0\u00ff");
  CHECK(harmless("\u0080\u009f") == "??");  // C1
  // Separators of lines and paragraphs, embeddings and overrides, isolates; and their neighbours.
  CHECK(harmless("\u2028\u2029\u202a\u202e") == "????");
  CHECK(harmless("\u2066\u2069") == "??");
  CHECK(harmless("\u061c\u200e\u200f") == "???");
  CHECK(harmless("\u2027\u202f\u2065\u206a\u061b\u200d\u2010") ==
        "\u2027\u202f\u2065\u206a\u061b\u200d\u2010");
  CHECK(harmless("\u30e8\u3042") == "\u30e8\u3042");
  // What is no UTF-8: cut off in the middle of a character, C1 as one byte, overlong, a surrogate.
  CHECK(harmless("a\xe2\x80") == "a??");
  CHECK(harmless("\xc2") == "?");
  CHECK(harmless("\x9b"
                 "31m") == "?31m");
  CHECK(harmless("\xc0\x9b\xe0\x82\x9b") == "?????");
  CHECK(harmless("\xed\xa0\x80\xf4\x90\x80\x80\xff") == "????????");
  CHECK(harmless("\xf0\x9f\xa6\x8a\xf4\x8f\xbf\xbf") == "\xf0\x9f\xa6\x8a\xf4\x8f\xbf\xbf");
  CHECK(harmless("").empty());
}

TEST_CASE(
    "a message has no more than anyone reads: of long words and of all the middle is left out") {
  const std::string words = "cannot open 'a b': No such file or directory";
  CHECK(shortened(words) == words);
  CHECK(shortened("").empty());
  const std::string name(4000, 'x');
  CHECK(shortened("a '" + name + "' b") ==
        "a '" + std::string(766, 'x') + " [... 2979 bytes ...] " + std::string(255, 'x') + "' b");
  // No character is cut.
  std::string wide;
  for (int i = 0; i < 70'000; ++i)
    wide += "\u3042";
  CHECK(harmless(shortened(wide)).find('?') == std::string::npos);
  CHECK(shortened(wide).size() < 1100);
  // Many short words.
  std::string many;
  while (many.size() < 200'000)
    many += "word ";
  CHECK(shortened(many).size() < 4200);
  CHECK(shortened(many).find(" bytes ...] ") != std::string::npos);
}
