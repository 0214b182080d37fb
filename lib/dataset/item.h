// The facts of a sample that vfm-shard keeps between its passes, in temporary files
// (dataset/item_store.h). Thread-safety: any thread for Item, one thread at a time for Shapes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace vfm::dataset {

/// The place of a sample in the tar of one column, given by the sample's number and its range of
/// bytes. The range includes headers and padding.
struct ColumnPlace {
  std::uint32_t row = 0;
  std::uint64_t offset = 0, size = 0;
};

/// Facts that many samples share.
struct Shape {
  std::string media;                     ///< Extension of the main member.
  std::string extras;                    ///< Other members except json, such as " txt text.npy".
  std::string image_format, image_mode;  ///< Pillow's names of an image's format and mode.
  std::string bin;                       ///< Bin by size and duration (curate/binning.h).
  auto operator<=>(const Shape&) const = default;
};

/// An input shard, given by the tars of its columns, first column first.
struct InputShard {
  std::string name;
  std::vector<std::string> tars;  ///< Paths as the input names them.
  /// For each tar, whether it is read from an unpacked copy, because it is compressed.
  std::vector<bool> packed;
  std::uint64_t line = 0;  ///< Place of the shard in the input.
};
/// Returns the path of the unpacked copy of a tar in `folder`.
std::string unpacked_path(const std::string& folder, std::uint64_t line, std::size_t column);

struct Item {
  std::string key;
  Shape shape;
  std::uint32_t shard = 0;  ///< Number of the InputShard.
  std::vector<ColumnPlace> columns;
  double width = 0, height = 0, seconds = 0, fps = 0, frames = 0;  ///< Unknown values are 0.
  std::uint64_t media_bytes = 0;
  std::uint64_t tar_bytes = 0;  ///< Bytes that all members except json take in a tar.
  /// Bytes of the merged JSON, without the fields that vfm-shard adds.
  std::uint64_t json_bytes = 0;
  std::string content;           ///< XXH3-128 of the media member.
  std::string identity;          ///< XXH3-128 of the whole sample.
  std::string source;            ///< Value of "source_hash", else of "source", else the key.
  std::string path;              ///< Value of "source" if "source_hash" exists, else empty.
  std::uint64_t encoder = 0;     ///< Hash of the embedding's encoder (SampleVector::encoder).
  std::vector<float> embedding;  ///< Numbers of the embedding. Empty without embedding.
  std::string notes;             ///< Data for --balance (dataset/balance.h).

  double pixels() const { return width * height; }
  /// Returns whether the source is the key because the JSON names no source.
  bool named_by_key() const { return source == key; }
};

/// A table that gives each distinct shape a number.
class Shapes {
 public:
  Shapes() = default;
  Shapes(Shapes&&) = default;
  Shapes& operator=(Shapes&&) = default;
  std::uint32_t number(const Shape& shape);
  const Shape& operator[](std::size_t number) const { return *shapes_.at(number); }
  std::size_t size() const { return shapes_.size(); }

 private:
  std::map<Shape, std::uint32_t> numbers_;
  std::vector<const Shape*> shapes_;
};

/// Appends all facts except key, shape, shard, source, path and embedding to `out`, as bytes.
/// `content` comes first, so that a caller can remove it.
void put_facts(std::string& out, const Item& item);
/// Reads the facts that put_facts() wrote. `content` tells whether the bytes include Item::content.
/// Throws Error.
void take_facts(std::string_view& rest, Item& item, bool content = true);

/// Append a shape or input to `out`, and read it again. Tars are named from the working directory.
/// take_...() throws Error.
void put_shape(std::string& out, const Shape& shape);
Shape take_shape(std::string_view& rest);
void put_input(std::string& out, const InputShard& input);
InputShard take_input(std::string_view& rest);

}  // namespace vfm::dataset
