// SPDX-License-Identifier: Apache-2.0
#include "data/given_texts.h"

#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "data/index_file.h"
#include "io/file.h"

namespace vfm::data {
namespace {

thread_local const GivenTexts* t_given = nullptr;

void read_split(const std::string& folder, const Json& info, FileTexts& texts) {
  const std::string list = io::join_path(folder, "index.jsonl");
  const std::string path = io::join_path(folder, "index.bin");
  std::optional<std::string>& text = texts[list];
  if (!io::file_exists(list)) return;
  if (io::file_exists(path) || io::File::open_regular(list).size() > kListInMemory)
    open_index(folder, info);  // makes it, or says what is read in its place
  if (index_fits(path, list, info)) {
    texts[path] = "";
    texts.erase(list);
  } else {
    text = io::read_file(list, kMostListInMemory);
  }
}

}  // namespace

FileTexts read_small_files(std::span<const std::string> folders,
                           std::span<const std::string> splits) {
  FileTexts texts;
  for (const std::string& folder : folders) {
    const std::string facts = io::join_path(folder, "latents.json");
    try {
      std::optional<std::string>& text = texts[facts];
      if (!io::file_exists(facts)) continue;
      text = io::read_file(facts);
    } catch (const Error&) {
      texts.erase(facts);
      continue;
    }
    for (const std::string& split : splits)
      try {
        read_split(io::join_path(folder, split), parse_json(*texts[facts], facts), texts);
      } catch (const Error&) {
        texts.erase(io::join_path(folder, split + "/index.jsonl"));
      }
  }
  return texts;
}

GivenTexts::GivenTexts(FileTexts texts) : texts_(std::move(texts)), before_(t_given) {
  t_given = this;
}
GivenTexts::~GivenTexts() {
  t_given = before_;
}

const std::optional<std::string>* GivenTexts::find(const std::string& path) {
  if (t_given == nullptr) return nullptr;
  const auto found = t_given->texts_.find(path);
  return found == t_given->texts_.end() ? nullptr : &found->second;
}

bool exists_or_given(const std::string& path) {
  const std::optional<std::string>* const given = GivenTexts::find(path);
  return given != nullptr ? given->has_value() : io::file_exists(path);
}

std::string read_or_given(const std::string& path) {
  const std::optional<std::string>* const given = GivenTexts::find(path);
  return given != nullptr && given->has_value() ? **given : io::read_file(path);
}

}  // namespace vfm::data
