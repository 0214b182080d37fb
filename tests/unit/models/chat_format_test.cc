// Where a folder's chat template and special tokens are taken from.
// SPDX-License-Identifier: Apache-2.0
#include "models/folder/chat_format.h"

#include <catch2/catch.hpp>

#include "base/json.h"
#include "io/atomic_file.h"
#include "support/temporary_folder.h"
#include "support/usage_error.h"

using namespace vfm;
using Catch::Contains;

TEST_CASE("a chat template is found where transformers finds it", "[chat]") {
  const TemporaryFolder folder;
  const auto put = [&](const char* name, const std::string& text) {
    io::write_file(folder / name, text);
  };
  const auto said = [&] { return models::read_chat_format(folder.path).prompt(Json::array()); };
  CHECK_THAT(usage_error(said), Contains("has no chat template"));
  put("tokenizer_config.json",
      R"({"chat_template":[{"name":"tools","template":"no"},{"name":"default","template":)"
      R"("config {{ eos_token }} {{ unk_token }} {{ pad_token }} {{ image_token }}|"}],)"
      R"("eos_token":{"content":"</s>"},"unk_token":null,"extra_special_tokens":{"image_token":"<i>"}})");
  put("special_tokens_map.json", R"({"eos_token":"no","pad_token":"<p>"})");
  CHECK(said() == "config </s>  <p> <i>|");
  put("chat_template.jinja", "file {{ add_generation_prompt }}{{ tools is none }}\n");
  CHECK(said() == "file TrueTrue");
  put("chat_template.json", R"({"chat_template":"json"})");
  CHECK(said() == "json");
  put("processor_config.json", R"({"chat_template":"processor"})");
  const auto format = models::read_chat_format(folder.path);
  CHECK(format.prompt(Json::array()) == "processor");
  CHECK(format.file == folder / "processor_config.json");
  put("processor_config.json", R"({"chat_template":"a\n{% if %}"})");
  CHECK_THAT(usage_error(said), Contains("processor_config.json', line 2"));
}

TEST_CASE("a chat format passes messages and what else the template asks for", "[chat]") {
  const TemporaryFolder folder;
  io::write_file(folder / "chat_template.jinja",
                 "{% for m in messages %}{{ m.role }}:{{ m.content }}{{ eos_token }}{% endfor %}"
                 "{% if add_generation_prompt %}>{% endif %}{{ number }}");
  io::write_file(folder / "tokenizer_config.json", R"({"eos_token":"!"})");
  const auto format = models::read_chat_format(folder.path);
  const Json messages = parse_json(R"([{"role":"user","content":"a"}])", "messages");
  CHECK(format.prompt(messages) == "user:a!>");
  CHECK(format.prompt(messages, false, {{"number", 2}, {"eos_token", "?"}}) == "user:a?2");
}
