// The facts of a sample that vfm-shard keeps between its passes, in temporary files
// (dataset/item_store.h). Thread-safety: any thread; Shapes one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace vfm::dataset {

/// The place of a sample in the tar of one column: the sample's number, and the range of its bytes
/// with headers and padding.
struct ColumnPlace {
  std::uint32_t row = 0;
  std::uint64_t offset = 0, size = 0;
};

/// Facts that many samples share.
struct Shape {
  std::string media;   ///< extension
  std::string extras;  ///< other members except json, each after a blank: " txt text.npy"
  std::string image_format, image_mode;  ///< Pillow's names, for images
  std::string bin;                       ///< by size and duration (curate/binning.h)
  auto operator<=>(const Shape&) const = default;
};

struct Item {
  std::string key;
  Shape shape;
  std::uint32_t shard = 0;  ///< number of the InputShard
  std::vector<ColumnPlace> columns;
  double width = 0, height = 0, seconds = 0, fps = 0, frames = 0;  ///< 0: not known
  std::uint64_t media_bytes = 0;                                   ///< bytes of the media member
  std::uint64_t tar_bytes = 0;   ///< bytes of members except json, with headers and padding
  std::uint64_t json_bytes = 0;  ///< bytes of merged JSON, without fields that vfm-shard adds
  std::string content;           ///< XXH3-128 of the media member
  std::string identity;          ///< XXH3-128 of everything
  std::string source;            ///< source_hash, or source, or the key
  std::string path;              ///< source, if there is also a source_hash
  std::uint64_t encoder = 0;     ///< the embedding's encoder; only equal numbers are compared
  std::vector<float> embedding;  ///< may be empty
  std::string notes;             ///< data for --balance (dataset/balance.h)

  double pixels() const { return width * height; }
  /// Returns true if the key is used as the source, because the JSON gives no source.
  bool named_by_key() const { return source == key; }
};

/// Numbers the shapes of a dataset.
class Shapes {
 public:
  Shapes() = default;
  Shapes(Shapes&&) = default;
  Shapes& operator=(Shapes&&) = default;
  std::uint32_t number(const Shape& shape);
  const Shape& operator[](std::size_t number) const { return *shapes_[number]; }
  std::size_t size() const { return shapes_.size(); }

 private:
  std::map<Shape, std::uint32_t> numbers_;
  std::vector<const Shape*> shapes_;
};

/// Appends the facts as bytes, except key, shape, shard, source, path and embedding, which are
/// stored separately. `content` comes first, so that it can be left out.
void put_facts(std::string& out, const Item& item);
/// Reads what put_facts() wrote. `content` must be false if the content was left out. Throws Error.
void take_facts(std::string_view& rest, Item& item, bool content = true);

}  // namespace vfm::dataset
