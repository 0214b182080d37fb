// Tokenizers against the reference libraries (scripts/golden/text_tokenizers.py), and the files
// that they refuse.
// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer.h"

#include <catch2/catch.hpp>
#include <cstring>

#include "base/error.h"
#include "base/json.h"
#include "io/file.h"
#include "io/safetensors.h"

using namespace vfm;

namespace {

constexpr std::size_t kAll = 1'000'000;
constexpr int kSentinels = 100;

class Golden {
 public:
  std::string_view bytes(const std::string& name) const {
    const io::TensorView* tensor = set_.find(name);
    REQUIRE(tensor);
    return {reinterpret_cast<const char*>(tensor->data.data()), tensor->data.size()};
  }
  template <class T>
  std::vector<int> integers(const std::string& name) const {
    const std::string_view from = bytes(name);
    std::vector<T> values(from.size() / sizeof(T));
    std::memcpy(values.data(), from.data(), from.size());
    return {values.begin(), values.end()};
  }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const io::TensorView& tensor : set_.tensors())
      if (tensor.name.starts_with("file.")) names.push_back(tensor.name.substr(5));
    return names;
  }
  std::unique_ptr<text::Tokenizer> tokenizer(const std::string& file) const {
    const std::string_view contents = bytes("file." + file);
    return file.ends_with(".json") ? text::make_json_tokenizer(contents, file)
                                   : text::make_sentencepiece_tokenizer(contents, kSentinels, file);
  }

 private:
  io::SafetensorsSet set_{VFM_GOLDEN, "tokenizers"};
};

/// A tokenizer.json with one member replaced.
std::string changed(const Golden& golden, const std::string& file, const char* member,
                    const char* json) {
  Json parsed = parse_json(golden.bytes("file." + file), file);
  parsed[Json::json_pointer(member)] = parse_json(json, "member");
  return dump_json(parsed);
}

}  // namespace

TEST_CASE("ids equal the reference's, for every kind of tokenizer") {
  const Golden golden;
  const std::string_view texts = golden.bytes("texts");
  const std::vector<int> sizes = golden.integers<std::int32_t>("text_sizes");
  const std::vector<std::string> files = golden.files();
  REQUIRE(files.size() == 13);
  REQUIRE(sizes.size() > 100);
  for (const std::string& file : files) {
    INFO(file);
    const auto tokenizer = golden.tokenizer(file);
    const std::vector<int> ids = golden.integers<std::int16_t>("ids." + file);
    const std::vector<int> counts = golden.integers<std::int16_t>("counts." + file);
    REQUIRE(counts.size() == sizes.size());
    std::size_t text = 0, id = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const std::string_view part = texts.substr(text, static_cast<std::size_t>(sizes[i]));
      INFO(part);
      const auto count = static_cast<std::size_t>(counts[i]);
      const auto first = ids.begin() + static_cast<std::ptrdiff_t>(id);
      CHECK(tokenizer->encode(part, kAll) ==
            std::vector<int>(first, first + static_cast<std::ptrdiff_t>(count)));
      text += part.size();
      id += count;
    }
    CHECK(text == texts.size());
    CHECK(id == ids.size());
  }
}

TEST_CASE("a text that is too long is cut before the special tokens") {
  const Golden golden;
  const std::string fox = "A red fox crosses a snowy road in the morning light.";
  for (const std::string file : {"t5.model", "t5.json"}) {
    const auto tokenizer = golden.tokenizer(file);
    const std::vector<int> all = tokenizer->encode(fox, kAll);
    std::vector<int> cut = tokenizer->encode(fox, 7);
    CHECK(cut.back() == 1);
    cut.pop_back();
    CHECK(cut == std::vector<int>(all.begin(), all.begin() + 6));
    CHECK(tokenizer->encode(fox, all.size()) == all);
    CHECK(tokenizer->encode(fox, 1) == std::vector<int>{1});
  }
  const auto bert = golden.tokenizer("bert.json");
  const std::vector<int> all = bert->encode(fox, kAll);
  CHECK(bert->encode(fox, 4) == std::vector<int>{2, all[1], all[2], 3});
}

TEST_CASE("sentinels count down from the end of the vocabulary") {
  const Golden golden;
  const auto library = golden.tokenizer("t5.model"), own = golden.tokenizer("t5.json");
  const int first = own->encode("<extra_id_0>", kAll)[0];
  CHECK(library->encode("<extra_id_0>", kAll) == std::vector<int>{first, 1});
  CHECK(library->encode("<extra_id_99>", kAll) == std::vector<int>{first - 99, 1});
  CHECK(library->encode("<extra_id_100>", kAll).size() > 3);
}

TEST_CASE("what a tokenizer.json asks for and is not known is named") {
  const Golden golden;
  struct Case {
    const char *file, *member, *json, *message;
  };
  for (
      const Case& c : {
          Case{"t5.json", "/normalizer", R"({"type":"Sparkle"})", "normalizer 'Sparkle'"},
          Case{"t5.json", "/pre_tokenizer", R"({"type":"UnicodeScripts"})", "'UnicodeScripts'"},
          Case{"t5.json", "/post_processor", R"({"type":"Other"})", "post-processor 'Other'"},
          Case{"t5.json", "/model/type", R"("WordLevel")", "type 'WordLevel'"},
          Case{"t5.json", "/model/unk_id", "100000", "unk_id"},
          Case{"t5.json", "/model/unk_id", "\"2\"", "unk_id"},
          Case{"t5.json", "/normalizer", R"({"type":"Precompiled","precompiled_charsmap":"AAAA"})",
               "precompiled_charsmap"},
          Case{"t5.json", "/normalizer", R"({"type":"Precompiled","precompiled_charsmap":"?"})",
               "base64"},
          Case{"t5.json", "/pre_tokenizer",
               R"({"type":"Metaspace","replacement":"_","prepend_scheme":"last"})", "'last'"},
          Case{
              "qwen.json", "/pre_tokenizer",
              R"({"type":"Split","behavior":"Isolated","invert":false,"pattern":{"Regex":"\\w+"}})",
              "'\\w'"},
          Case{"qwen.json", "/pre_tokenizer",
               R"({"type":"Split","behavior":"Isolated","invert":false,"pattern":{"Regex":"(a"}})",
               "'(a'"},
          Case{"qwen.json", "/pre_tokenizer",
               R"({"type":"Split","behavior":"Sideways","invert":false,"pattern":{"String":"a"}})",
               "'Sideways'"},
          Case{"qwen.json", "/model/merges/0", R"(["a","nothing at all"])", "nothing at all"},
          Case{"qwen.json", "/model/dropout", "0.1", "dropout"},
          Case{"clip.json", "/model/unk_token", R"("<none>")", "'<none>'"},
          Case{"bert.json", "/model/vocab/x", "-1", "'x'"},
          Case{"bert.json", "/post_processor/single/0", R"({"Sequence":{"id":"B","type_id":0}})",
               "TemplateProcessing"},
      }) {
    INFO(c.message);
    try {
      text::make_json_tokenizer(changed(golden, c.file, c.member, c.json), "'tokenizer.json'");
      FAIL("accepted");
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::usage);
      CHECK_THAT(error.what(), Catch::Contains(c.message));
    }
  }
  CHECK_THROWS_WITH(text::make_json_tokenizer("[1,2", "'x'"), Catch::Contains("'x' is not JSON"));
  CHECK_THROWS_WITH(text::make_json_tokenizer("{}", "'x'"), Catch::Contains("no \"model\""));
  CHECK_THROWS_WITH(text::make_sentencepiece_tokenizer("rubbish", 0, "'x'"),
                    Catch::Contains("'x' is not a sentencepiece model"));
}

TEST_CASE("an expression that backtracks without end is an error, not a hang") {
  const Golden golden;
  const auto slow = text::make_json_tokenizer(
      changed(
          golden, "qwen.json", "/pre_tokenizer",
          R"({"type":"Split","behavior":"Isolated","invert":false,"pattern":{"Regex":"(a|a|aa)+b"}})"),
      "'slow.json'");
  CHECK_NOTHROW(slow->encode("aab", kAll));
  CHECK_THROWS_WITH(slow->encode(std::string(60, 'a'), kAll), Catch::Contains("'slow.json'"));
}

TEST_CASE("ids become the reference's text, at once and one by one") {
  const Golden golden;
  const std::string path = std::string(VFM_GOLDEN) + "/chat_templates.json";
  const Json cases = parse_json(io::read_file(path), path)["decoded"];
  REQUIRE(cases.size() > 60);
  for (const Json& one : cases) {
    const std::string file = one["file"];
    Json contents = parse_json(golden.bytes("file." + file), file);
    contents["decoder"] = {{"type", "ByteLevel"}};
    const auto tokens = text::make_json_tokenizer(dump_json(contents), file)->token_bytes();
    const auto ids = one["ids"].get<std::vector<std::int32_t>>();
    CHECK(text::decode(tokens, ids) == one["text"].get<std::string>());
    CHECK(text::decode(tokens, ids, true) == one["with_special"].get<std::string>());
  }
}

TEST_CASE("text comes as soon as its characters are whole") {
  const auto tokens = std::make_shared<text::TokenBytes>();
  const char* parts[] = {"a",
                         "\xf0\x9f",
                         "\x91",
                         "\xa9"
                         "b",
                         "\xe2\x82",
                         "\xff",
                         "\xed",
                         "\xa0",
                         "\xc3"};
  for (int i = 0; i < 9; ++i)
    tokens->tokens[i] = {parts[i]};
  tokens->tokens[9] = {"<end>", true};
  text::TextStream stream(tokens);
  const char* said[] = {"a",
                        "",
                        "",
                        "\xf0\x9f\x91\xa9"
                        "b",
                        "",
                        "\ufffd\ufffd",
                        "",
                        "\ufffd\ufffd",
                        "",
                        ""};
  for (int i = 0; i < 10; ++i)
    CHECK(stream.add(i) == said[i]);
  CHECK(stream.end() == "\ufffd");
  CHECK(stream.end().empty());
}

TEST_CASE("a prompt has the special tokens that it names, and no others") {
  const Golden golden;
  const auto tokenizer = golden.tokenizer("gpt2.json");
  const auto around = tokenizer->encode("a", kAll), bare = tokenizer->encode_prompt("a");
  CHECK(around.size() == bare.size() + 2);
  CHECK(tokenizer->encode_prompt("<s>a</s>") == around);
  CHECK_THROWS_AS(golden.tokenizer("bert.json")->token_bytes(), Error);
}
