// SPDX-License-Identifier: Apache-2.0
#include <sentencepiece_processor.h>

#include <algorithm>

#include "base/error.h"
#include "text/added_tokens.h"
#include "text/tokenizer.h"
#include "text/unicode.h"

namespace vfm::text {
namespace {

class SentencePiece : public Tokenizer {
 public:
  SentencePiece(std::string_view model, int sentinels, std::string_view what) {
    const auto status = processor_.LoadFromSerializedProto(model);
    if (!status.ok()) fail_usage("{} is not a sentencepiece model: {}", what, status.ToString());
    end_ = processor_.eos_id();
    if (end_ < 0) fail_usage("{} has no token for the end of a text", what);
    const int size = processor_.GetPieceSize();
    std::vector<AddedToken> tokens;
    // As in the reference, sentinels take the spaces around them, and texts may contain <pad>, </s>
    // and <unk>.
    for (int i = 0; i < sentinels; ++i)
      tokens.push_back(
          {fmt::format("<extra_id_{}>", i), size + sentinels - 1 - i, false, true, true});
    for (int id = 0; id < size; ++id)
      if (processor_.IsControl(id) || processor_.IsUnknown(id))
        tokens.push_back({processor_.IdToPiece(id), id, false, false, false});
    special_ = AddedTokens(std::move(tokens));
  }

  std::vector<std::int32_t> encode(std::string_view utf8, std::size_t max_tokens) const override {
    const std::string text = valid_utf8(utf8);
    std::vector<std::int32_t> ids;
    for (const AddedTokens::Part& part : special_.split(text)) {
      if (part.id >= 0) {
        ids.push_back(part.id);
        continue;
      }
      std::vector<int> found;
      const auto status = processor_.Encode(
          std::string_view(text).substr(part.begin, part.end - part.begin), &found);
      if (!status.ok()) fail("sentencepiece: {}", status.ToString());
      ids.insert(ids.end(), found.begin(), found.end());
    }
    ids.resize(std::min(ids.size(), max_tokens > 0 ? max_tokens - 1 : 0));
    ids.push_back(end_);
    return ids;
  }

 private:
  sentencepiece::SentencePieceProcessor processor_;
  AddedTokens special_;
  int end_ = 0;
};

}  // namespace

std::unique_ptr<Tokenizer> make_sentencepiece_tokenizer(std::string_view model, int sentinels,
                                                        std::string_view what) {
  return std::make_unique<SentencePiece>(model, sentinels, what);
}

}  // namespace vfm::text
