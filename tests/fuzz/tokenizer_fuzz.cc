// Tokenizer files, and texts for them.
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "fuzz.h"
#include "text/tokenizer.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace vfm;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    text::make_json_tokenizer(bytes, "input")->encode(bytes.substr(0, 200), 100);
  } catch (const Error&) {
  }
  try {
    text::make_sentencepiece_tokenizer(bytes, 2, "input")->encode(bytes.substr(0, 200), 100);
  } catch (const Error&) {
  }
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  return {
      R"({"added_tokens":[{"id":3,"content":"<s>","single_word":true,"lstrip":true,"rstrip":true,)"
      R"("normalized":false,"special":true}],"normalizer":{"type":"Sequence","normalizers":[)"
      R"({"type":"Precompiled","precompiled_charsmap":"BAAAAAAEAABhAA=="},{"type":"NFKC"},)"
      R"({"type":"Strip","strip_left":true,"strip_right":true},{"type":"Replace",)"
      R"("pattern":{"Regex":" {2,}"},"content":" "}]},"pre_tokenizer":{"type":"Metaspace",)"
      R"("replacement":"▁","prepend_scheme":"first"},"post_processor":{"type":"TemplateProcessing",)"
      R"("single":[{"Sequence":{"id":"A"}},{"SpecialToken":{"id":"</s>"}}],)"
      R"("special_tokens":{"</s>":{"ids":[1]}}},"model":{"type":"Unigram","unk_id":0,)"
      R"("byte_fallback":true,"vocab":[["<unk>",0],["▁",-1],["a",-2.5],["ab",-3]]}})",
      R"({"normalizer":{"type":"BertNormalizer"},"pre_tokenizer":{"type":"Sequence",)"
      R"("pretokenizers":[{"type":"Split","pattern":{"Regex":"\\s+(?!\\S)|[^\\p{L}]+"},)"
      R"("behavior":"MergedWithNext","invert":true},{"type":"ByteLevel"}]},"post_processor":{)"
      R"("type":"RobertaProcessing","sep":["</s>",2],"cls":["<s>",0]},"model":{"type":"BPE",)"
      R"("vocab":{"a":0,"b":1,"ab":2,"<unk>":3},"merges":["a b"],"unk_token":"<unk>",)"
      R"("fuse_unk":true,"byte_fallback":true}})",
      R"({"model":{"type":"WordPiece","vocab":{"[UNK]":0,"a":1,"##b":2}},)"
      R"("pre_tokenizer":{"type":"BertPreTokenizer"}})"};
}
