// Answers that were paid for, on a disk that is full for a while.
// SPDX-License-Identifier: Apache-2.0
#include "columns/caption/paid_answers.h"

#include <sys/resource.h>

#include <catch2/catch.hpp>
#include <csignal>

#include "base/error.h"
#include "support/temporary_folder.h"

using vfm::columns::PaidAnswers;

TEST_CASE("an answer after one that could not be written is kept") {
  const vfm::TemporaryFolder folder;
  const std::string path = folder / "a.answers.jsonl";
  PaidAnswers answers(path);
  answers.add("one", {"first", 1, 2});
  const auto ignored = std::signal(SIGXFSZ, SIG_IGN);
  rlimit whole{};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &whole) == 0);
  const rlimit full{200, whole.rlim_max};
  REQUIRE(setrlimit(RLIMIT_FSIZE, &full) == 0);
  CHECK_THROWS_AS(answers.add("two", {std::string(1000, 'x'), 3, 4}), vfm::Error);
  REQUIRE(setrlimit(RLIMIT_FSIZE, &whole) == 0);
  std::signal(SIGXFSZ, ignored);
  answers.add("three", {"third", 5, 6});
  const PaidAnswers again(path);
  CHECK(again.find("one")->text == "first");
  CHECK_FALSE(again.find("two"));
  REQUIRE(again.find("three"));
  CHECK(again.find("three")->completion_tokens == 6);
}

TEST_CASE("of an answer without a text it is kept why, and whether it was cut") {
  const vfm::TemporaryFolder folder;
  const std::string path = folder / "a.answers.jsonl";
  PaidAnswers(path).add("one", {"", 1, 2, true, ": refused"});
  const auto found = PaidAnswers(path).find("one");
  REQUIRE(found);
  CHECK(found->cut);
  CHECK(found->why_empty == ": refused");
}

TEST_CASE("what a model thought is left out, wherever its marks stand") {
  const auto& answer = vfm::columns::without_thinking;
  CHECK(answer("a fox") == "a fox");
  CHECK(answer("<think>\nan owl?</think>\na fox") == "\na fox");
  CHECK(answer("an owl?</think>a fox") == "a fox");
  CHECK(answer("an owl?</think><think>no</think>a <think>red</think>fox") == "a fox");
  CHECK(answer("<think>an owl?") == "");
  CHECK(answer("a fox</think>") == "");
}
