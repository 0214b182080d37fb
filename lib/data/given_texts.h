// What another process has read of folders of latents and datasets of clips, so that not every
// process of a run asks the file system for the same.
//
// While a GivenTexts exists, LatentSets and ClipSets that its thread opens take from it what it
// has. All other files are read as always. Thread-safety: one thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>

namespace vfm::data {

/// Contents by path; none: there is no such file. That of an index.bin is empty and says that the
/// file fits. ClipSet::given_as() names what stands for several files.
using FileTexts = std::map<std::string, std::optional<std::string>>;

/// Reads latents.json, and the index.jsonl of each split if its samples are to be listed in memory.
/// Where index.bin is to be mapped, it is made unless one fits. Anything wrong is left to those who
/// open the folders.
FileTexts read_small_files(std::span<const std::string> folders,
                           std::span<const std::string> splits);

class GivenTexts {
 public:
  explicit GivenTexts(FileTexts texts);
  ~GivenTexts();
  GivenTexts(const GivenTexts&) = delete;
  GivenTexts& operator=(const GivenTexts&) = delete;

  /// What this thread is given of a file; null: nothing is known of it.
  static const std::optional<std::string>* find(const std::string& path);

 private:
  const FileTexts texts_;
  const GivenTexts* const before_;
};

/// io::file_exists() and io::read_file(), of given files without asking for them.
bool exists_or_given(const std::string& path);
std::string read_or_given(const std::string& path);

}  // namespace vfm::data
