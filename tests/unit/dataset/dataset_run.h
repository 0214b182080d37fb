// Shards made by hand, a run of vfm-shard over them, and what is then in the dataset.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/progress.h"
#include "dataset/dataset.h"
#include "io/file.h"
#include "io/npy.h"
#include "shard/reader.h"
#include "shard/sample.h"
#include "share/slots.h"
#include "support/heard_log.h"
#include "support/parts.h"
#include "support/temporary_folder.h"

namespace vfm::dataset {

/// A tar as others write it: no index, any names, any members.
inline std::string tar_of(const std::vector<shard::Sample>& samples) {
  std::string tar;
  const auto octal = [](std::uint64_t value, int digits) {
    return fmt::format("{:0{}o}", value, digits) + '\0';
  };
  for (const shard::Sample& sample : samples)
    for (const shard::Member& member : sample.members) {
      std::string header(512, '\0');
      const auto put = [&](std::size_t at, const std::string& text) {
        header.replace(at, text.size(), text);
      };
      put(0, sample.key + "." + member.extension);
      put(100, octal(0644, 7)), put(108, octal(0, 7)), put(116, octal(0, 7));
      put(124, octal(member.data.size(), 11)), put(136, octal(0, 11));
      put(148, "        "), put(156, "0"), put(257, std::string("ustar\0", 6) + "00");
      std::uint64_t sum = 0;
      for (const char c : header)
        sum += static_cast<unsigned char>(c);
      put(148, octal(sum, 6));
      tar += header + member.data;
      tar.resize((tar.size() + 511) / 512 * 512);
    }
  tar.resize(tar.size() + 1024);
  return tar;
}

inline std::string vector_of(const std::vector<float>& values) {
  return io::make_npy_float({static_cast<std::int64_t>(values.size())}, values);
}

/// A video and its JSON; `more` stands behind them.
inline shard::Sample video(const std::string& key, const std::string& json,
                           const std::string& bytes = {}, std::vector<shard::Member> more = {}) {
  shard::Sample sample{key, {{"mp4", bytes.empty() ? "video " + key : bytes}, {"json", json}}};
  std::move(more.begin(), more.end(), std::back_inserter(sample.members));
  return sample;
}

/// In memory where that is possible: vfm-shard waits for the disk with each file that it writes.
struct MemoryFolder : TemporaryFolder {
  MemoryFolder() {
    std::string other = "/dev/shm/vfm-test-XXXXXX";
    if (::mkdtemp(other.data()) == nullptr) return;
    std::filesystem::remove_all(path);
    path = other;
  }
};

class DatasetRun {
 public:
  DatasetRun() {
    options.output = folder / "out";
    options.shard_bytes = 1 << 20;
  }

  /// Writes NAME.tar, which becomes an input.
  void add(const std::string& name, const std::vector<shard::Sample>& samples) {
    folder.write(name + ".tar", tar_of(samples));
    options.inputs.push_back(folder / (name + ".tar"));
  }

  /// Returns the number of errors.
  long run(SampleCounts* counts = nullptr) {
    const HeardLog heard(level);
    share::Slots slots(1);
    struct Outcome {
      DatasetRun& run;
      ~Outcome() { run.log = run.plain(HeardLog::text()); }
    } outcome{*this};
    records.clear();
    const std::string path = folder / "records";
    long errors = 0;
    {
      const io::File file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644), path);
      io::ManifestWriter manifest(file.fd());
      errors = dataset::run(options, slots, no_progress(), manifest, counts);
    }
    records = lines_of(path);
    return errors;
  }
  /// What a run says that is refused for its options.
  std::string refused() {
    return said([&] { run(); }, ErrorKind::usage);
  }
  std::string failed() {
    return said([&] { run(); }, ErrorKind::runtime);
  }

  void remove_output() const { std::filesystem::remove_all(options.output); }

  /// With names of files as they are in the folder.
  std::string plain(const std::string& text) const { return replaced(text, folder.path + "/", ""); }

  std::string text(const std::string& name) const {
    const std::string path = folder / name;
    return io::file_exists(path) ? plain(io::read_file(path)) : "(none)";
  }
  Json json(const std::string& name) const { return parse_json(text(name), name); }
  std::vector<Json> lines(const std::string& name) const { return lines_of(folder / name); }

  /// The JSON of each sample that is in the dataset.
  std::map<std::string, Json> samples() const {
    std::map<std::string, Json> all;
    each([&](const std::string&, const shard::Sample& sample) {
      all[sample.key] = parse_json(*sample.find("json"), sample.key);
    });
    return all;
  }
  std::string keys() const {
    std::string keys;
    for (const auto& [key, meta] : samples())
      keys += (keys.empty() ? "" : " ") + key;
    return keys;
  }
  void each(const std::function<void(const std::string& tar, const shard::Sample&)>& use) const {
    for (const std::string& path : files())
      if (path.ends_with(".tar"))
        shard::for_each_sample(options.output + "/" + path,
                               [&](shard::Sample& sample) { use(path, sample); });
  }
  /// All files of the dataset, sorted.
  std::vector<std::string> files() const {
    std::vector<std::string> list;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(options.output))
      if (entry.is_regular_file())
        list.push_back(entry.path().string().substr(options.output.size() + 1));
    std::sort(list.begin(), list.end());
    return list;
  }

  /// The text of a page, a line for each piece of markup; without rules, charts and the day.
  std::string page_text() const {
    std::string html = text("page.html"), words;
    const auto cut = [&](const char* begin, const char* end) {
      for (std::size_t at; (at = html.find(begin)) != std::string::npos;)
        html.erase(at, html.find(end, at + std::string_view(begin).size()) +
                           std::string_view(end).size() - at);
    };
    cut("<style>", "</style>"), cut("<svg", "</svg>"), cut("<p class=\"about\">", "</p>");
    cut("\u2068", ""), cut("\u2069", ""), cut("<title>", "</title>"), cut("<wbr>", "");
    for (const char* end : {"</td><td dir=\"auto\">", "</th><th scope=\"col\">", "</dt><dd>"})
      for (std::size_t at; (at = html.find(end)) != std::string::npos;)
        html.replace(at, std::string_view(end).size(), " | ");
    // Whose thumbnail it is.
    for (std::size_t at; (at = html.find("<span class=\"pic")) != std::string::npos;) {
      const std::size_t name = html.find("aria-label=\"", at) + 12, end = html.find('"', name);
      html.replace(at, html.find('>', end) + 1 - at, "\n" + html.substr(name, end - name) + ": ");
    }
    bool tag = false;
    for (const char c : html) {
      if (c == '<') tag = true;
      if (!tag && (c != '\n' || !words.ends_with('\n'))) words += c;
      if (c == '>') tag = false;
    }
    return words;
  }

  MemoryFolder folder;
  ShardOptions options;
  LogLevel level = LogLevel::warning;
  std::vector<Json> records;  ///< of the last run
  std::string log;

 private:
  template <class Act>
  std::string said(Act act, ErrorKind kind) const {
    try {
      act();
    } catch (const Error& error) {
      return (error.kind() == kind ? "" : "(other kind) ") + plain(error.what());
    }
    return "(nothing)";
  }
  std::vector<Json> lines_of(const std::string& path) const {
    std::vector<Json> list;
    const std::string all = plain(io::read_file(path));
    for (std::size_t at = 0; at < all.size();) {
      const std::size_t end = std::min(all.find('\n', at), all.size());
      list.push_back(parse_json(all.substr(at, end - at), path));
      at = end + 1;
    }
    return list;
  }
};

}  // namespace vfm::dataset
