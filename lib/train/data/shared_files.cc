// SPDX-License-Identifier: Apache-2.0
#include "train/data/shared_files.h"

#include <charconv>
#include <string_view>

#include "base/error.h"
#include "base/json.h"
#include "io/file.h"
#include "train/encoded/encoded_clips.h"
#include "train/kind.h"

namespace vfm::train {
namespace {

/// Of each file a line with the sizes of its path and its text ("-": no text), and both.
std::string packed(const data::FileTexts& texts) {
  std::string all;
  for (const auto& [path, text] : texts)
    all += fmt::format("{} {}\n{}{}", path.size(), text ? std::to_string(text->size()) : "-", path,
                       text.value_or(""));
  return all;
}

data::FileTexts unpacked(std::string_view all) {
  const auto take = [&all](std::size_t bytes) {
    const std::string_view one = all.substr(0, bytes);
    all.remove_prefix(one.size());
    return one;
  };
  data::FileTexts texts;
  while (!all.empty()) {
    const std::string_view sizes = take(all.find('\n') + 1);
    std::size_t of_path = 0, of_text = 0;
    const char* const end = sizes.data() + sizes.size();
    const char* const gap = std::from_chars(sizes.data(), end, of_path).ptr;
    const bool has_text = std::from_chars(gap + 1, end, of_text).ec == std::errc{};
    std::optional<std::string>& text = texts[std::string(take(of_path))];
    if (has_text) text = take(of_text);
  }
  return texts;
}

const std::vector<std::string> kSplits = {"train", "val"};

/// The lists of clips of a dataset, and what their encoders are. Anything wrong is left to those
/// who open them.
data::FileTexts list_clips(const RunOptions& options) {
  data::FileTexts texts;
  data::ClipListing listing = clip_listing_of(options, !options.encoders.text.empty());
  const std::string notes = io::join_path(options.data, "dataset.json");
  try {
    if (!options.encoders.tokenizer.empty())
      Encoders::tell(texts, options.encoders, options.device);
    if (io::file_exists(notes)) texts[notes] = io::read_file(notes);
    for (const std::string& split : kSplits) {
      const data::ClipSet set(options.data, split, listing);
      texts[data::ClipSet::given_as(options.data, split, listing)] = set.packed();
      if (!options.encoders.tokenizer.empty())
        texts[text_encoder_given_as(options.data, split, listing)] =
            dump_json(text_encoder_of(set, listing.texts));
      if (!options.recipe.takes_text()) listing.texts.names.clear();  // as EncodedClips does then
    }
  } catch (const Error&) {
    texts.clear();
  }
  return texts;
}

}  // namespace

data::ClipListing clip_listing_of(const RunOptions& options, bool captions) {
  if (options.encoders.tokenizer.empty()) return {};
  return {true, {options.recipe.data.captions, captions}};
}

data::FileTexts share_small_files(dist::World& world, const RunOptions& options) {
  if (world.size() == 1 || !options.synthetic.empty()) return {};
  const std::vector<std::string> folders =
      options.blend.empty() ? std::vector{options.data} : options.blend;
  const bool clips = !options.encoders.tokenizer.empty() ||
                     &kind_of(options.recipe.model.type) == &tokenizer_kind();
  std::string all;
  if (world.rank() == 0)
    all = packed(clips ? list_clips(options) : data::read_small_files(folders, kSplits));
  return unpacked(dist::broadcast(world, all));
}

}  // namespace vfm::train
