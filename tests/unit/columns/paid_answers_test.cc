// Answers that were paid for, on a disk that is full for a while.
// SPDX-License-Identifier: Apache-2.0
#include "columns/paid_answers.h"

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
