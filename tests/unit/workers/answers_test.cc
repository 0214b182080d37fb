// Answers of models that write, as parcels: no bit is lost, and what is no answer is an Error.
// SPDX-License-Identifier: Apache-2.0
#include "workers/answers.h"

#include <catch2/catch.hpp>
#include <exception>

#include "base/error.h"
#include "base/json.h"

using namespace vfm;
using namespace vfm::workers;

TEST_CASE("answers and rules come out as they went in") {
  models::AnswerRule rule;
  rule.choice = {0.1 + 0.2, 0.9, 1.05};
  rule.most_tokens = 77;
  rule.seed = ~std::uint64_t{0};
  const models::AnswerRule again = rule_of(parse_json(dump_json(to_json(rule)), "a rule"));
  CHECK(again.choice.temperature == 0.1 + 0.2);
  CHECK(again.choice.top_p == 0.9);
  CHECK(again.choice.repetition_penalty == 1.05);
  CHECK(again.most_tokens == 77);
  CHECK(again.seed == rule.seed);

  models::Answer said{"no UTF-8: \xff", 12, 3, true};
  said.ids = {5, -1, 7};
  said.log_probabilities = {-0.1, -1e-300, -3};
  models::Answer none;
  none.error = std::make_exception_ptr(Error("too long", Cause::limit));
  Parcel parcel{"", Json{{"answers", Json::array()}}, {}};
  put_answer(parcel, said);
  put_answer(parcel, none);
  const models::Answer first = answer_at(parcel, 0), second = answer_at(parcel, 1);
  CHECK(first.text == said.text);
  CHECK(first.prompt_tokens == 12);
  CHECK(first.tokens == 3);
  CHECK(first.cut);
  CHECK(first.ids == said.ids);
  CHECK(first.log_probabilities == said.log_probabilities);
  CHECK_FALSE(first.error);
  REQUIRE(second.error);
  try {
    std::rethrow_exception(second.error);
  } catch (const Error& error) {
    CHECK(error.cause() == Cause::limit);
    CHECK(std::string(error.what()) == "too long");
  }
}

TEST_CASE("a failure of the GPU is no answer, and lists that do not fit are none") {
  Parcel parcel{"", Json{{"answers", Json::array()}}, {}};
  models::Answer broken;
  broken.error = std::make_exception_ptr(Error("gone", ErrorKind::device));
  CHECK_THROWS_AS(put_answer(parcel, broken), Error);
  CHECK_THROWS_AS(answer_at(parcel, 0), Error);
  put_answer(parcel, {"a", 1, 1, false});
  CHECK_THROWS_AS(answer_at(parcel, 1), Error);
  Parcel odd = parcel;
  odd.tensors[1] = bytes_tensor("abc");
  CHECK_THROWS_AS(answer_at(odd, 0), Error);
  odd.tensors.pop_back();
  CHECK_THROWS_AS(answer_at(odd, 0), Error);
  odd = parcel;
  odd.words["answers"][0].erase("tokens");
  CHECK_THROWS_AS(answer_at(odd, 0), Error);
}
