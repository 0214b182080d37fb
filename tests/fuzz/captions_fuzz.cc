// Caption files and caption text: SubRip, JSON, any encoding, words, vectors.
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "base/json.h"
#include "fuzz.h"
#include "text/captions.h"
#include "text/hash_encoder.h"
#include "text/unicode.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace vfm;
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  try {
    const std::string utf8 = text::to_utf8(bytes);
    text::first_characters(text::clean_line(utf8), size % 50);
    text::HashEncoder(8, 16).encode(bytes);
    text::caption_of_span(text::parse_srt(utf8).cues, 1, 3);
    text::caption_of_span(text::captions_of_json(parse_json(utf8, "input"), "input"), 1, 3);
  } catch (const Error&) {
  }
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  using namespace std::string_literals;
  return {
      "1\n00:00:00,000 --> 00:00:01,500\n<i>a red</i> {\\an8}fox\n\n2\n00:00:01,5 --> "
      "00:00:04.25\nb\n",
      "\xff\xfe\x31\0\n\0\x30\0:\0\x31\0 \0-\0-\0>\0 \0\x30\0:\0\x32\0\n\0x\0"s,
      R"([{"start":0,"end":2,"caption":"a fox"},{"start":2,"end":4,"caption":"\u0e2a\u0e38"}])",
      R"({"caption":"שועל 赤い狐 สุนัข 👩‍🚀 e\u0301"})"};
}
