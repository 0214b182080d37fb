// SPDX-License-Identifier: Apache-2.0
#include "io/remote/msc_manifest.h"

#include <algorithm>

#include "base/error.h"
#include "io/file.h"
#include "io/remote/msc.h"

namespace vfm::io {
namespace {

constexpr std::size_t kMostMscRows = 100'000'000;
constexpr const char* kMscIndex = "msc_manifest_index.json";
constexpr const char* kMscFolder = ".msc_manifests";

std::string below(const std::string& folder, const std::string& name) {
  return folder.empty() || folder.ends_with('/') ? folder + name : folder + "/" + name;
}

/// Returns the key of the newest manifest.
std::string newest_manifest(const MscManifest::Reader& reader, const std::string& base,
                            const std::string& path) {
  std::string place = base + path;
  while (place.ends_with('/'))
    place.pop_back();
  if (place.ends_with(".json")) return place;
  if (const std::string here = below(place, kMscIndex); !path.empty() && reader.exists(here))
    return here;
  if (path.find(kMscFolder) == path.npos) place = below(place, kMscFolder);
  std::vector<std::string> times = reader.folders(place + "/");
  std::sort(times.rbegin(), times.rend());
  for (const std::string& time : times)
    if (const std::string key = place + "/" + time + kMscIndex; reader.exists(key)) return key;
  fail_as(Cause::open, "there is no manifest of MSC below '{}'", place);
}

}  // namespace

MscManifest::MscManifest(const Reader& reader, const std::string& base, const std::string& path) {
  const std::string index = newest_manifest(reader, base, path);
  const std::string folder = index.substr(0, index.rfind('/') + 1);
  for (const std::string& part :
       msc_manifest_parts(reader.read(index), fmt::format("'{}'", index))) {
    const std::string key = part.starts_with('/') ? base + part.substr(1) : folder + part;
    std::size_t number = 0;
    reader.read_lines(key, [&](const std::string& line) {
      ++number;
      if (line.find_first_not_of(" \r\t") == line.npos) return;
      if (rows_.size() == kMostMscRows)
        fail_as(Cause::limit, "'{}' has more than {} rows", index, kMostMscRows);
      MscRow row = msc_manifest_row(line, fmt::format("line {} of '{}'", number, key));
      const bool same = row.physical == row.key;
      rows_.push_back({base + row.key, row.bytes, same ? "" : base + row.physical});
    });
  }
  // The last row of a key counts.
  std::stable_sort(rows_.begin(), rows_.end(),
                   [](const Row& a, const Row& b) { return a.key < b.key; });
  std::size_t kept = 0;
  for (std::size_t i = 0; i < rows_.size(); ++i)
    if (i + 1 == rows_.size() || rows_[i].key != rows_[i + 1].key) {
      if (kept != i) rows_[kept] = std::move(rows_[i]);
      ++kept;
    }
  rows_.resize(kept);
}

void MscManifest::list(const std::string& prefix, bool all,
                       const std::function<void(const ListedObject&)>& each) const {
  auto row = std::lower_bound(rows_.begin(), rows_.end(), prefix,
                              [](const Row& a, const std::string& b) { return a.key < b; });
  while (row != rows_.end() && row->key.starts_with(prefix)) {
    const std::string name = row->key.substr(prefix.size());
    const std::size_t slash = all ? name.npos : name.find('/');
    if (slash == name.npos) {
      if (!name.empty()) each({name, row->bytes, ""});
      ++row;
      continue;
    }
    const std::string folder = name.substr(0, slash + 1);
    each({folder, 0, ""});
    // The next key that is not in this folder. '0' comes after '/'.
    const std::string after = prefix + name.substr(0, slash) + "0";
    row = std::lower_bound(row, rows_.end(), after,
                           [](const Row& a, const std::string& b) { return a.key < b; });
  }
}

std::optional<std::string> MscManifest::physical(const std::string& key) const {
  const auto row = std::lower_bound(rows_.begin(), rows_.end(), key,
                                    [](const Row& a, const std::string& b) { return a.key < b; });
  if (row == rows_.end() || row->key != key) return std::nullopt;
  return row->physical.empty() ? key : row->physical;
}

}  // namespace vfm::io
