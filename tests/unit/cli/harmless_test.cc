// SPDX-License-Identifier: Apache-2.0
#include "cli/harmless.h"

#include <catch2/catch.hpp>

using vfm::cli::harmless;

TEST_CASE("what steers a terminal or turns a line becomes a question mark, and no more") {
  CHECK(harmless("a\nb\tc\x1b[2J\x7f"
                 "d") == "a?b?c?[2J?d");
  CHECK(harmless(std::string("a\0b", 3)) == "a?b");
  CHECK(harmless(" ~\u00a0\u00ff") == " ~\u00a0\u00ff");
  CHECK(harmless("\u0080\u009f") == "??");  // C1
  // Separators of lines and paragraphs, embeddings and overrides, isolates; and their neighbours.
  CHECK(harmless("\u2028\u2029\u202a\u202e") == "????");
  CHECK(harmless("\u2066\u2069") == "??");
  CHECK(harmless("\u2027\u202f\u2065\u206a") == "\u2027\u202f\u2065\u206a");
  CHECK(harmless("\u30e8\u3042") == "\u30e8\u3042");
  // Cut off in the middle of a character: as it is.
  CHECK(harmless("a\xe2\x80") == "a\xe2\x80");
  CHECK(harmless("\xc2") == "\xc2");
  CHECK(harmless("").empty());
}
