// The first pass of vfm-shard: every sample read once, and what is needed to decide about it kept.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/slots.h"
#include "dataset/dataset.h"
#include "dataset/join.h"
#include "io/error_log.h"
#include "io/manifest.h"
#include "shard/reader.h"

namespace vfm::dataset {

/// An input shard: its columns' tars with their indexes, the first column first.
struct InputShard {
  std::string name;               ///< for messages
  std::vector<std::string> tars;  ///< plain ones: unpacked where they were compressed
  std::vector<shard::TarOffsets> indexes;
};

struct Item {
  std::string key;
  std::uint32_t shard = 0;          ///< number of the InputShard
  std::vector<std::uint32_t> rows;  ///< of the sample in each column
  std::string media;                ///< extension
  std::string extras;  ///< the other members but json, each after a blank: " txt text.npy"
  double width = 0, height = 0, seconds = 0, fps = 0, frames = 0;  ///< 0: not known
  std::string image_format, image_mode;                            ///< Pillow's names, for images
  std::uint64_t media_bytes = 0;                                   ///< of the media member alone
  std::uint64_t tar_bytes = 0;   ///< of all members but json, with headers and padding
  std::uint64_t json_bytes = 0;  ///< of the merged JSON, without what vfm-shard adds
  std::string content;           ///< XXH3-128 of the media member
  std::string identity;          ///< XXH3-128 of everything
  std::string source;            ///< source_hash, else source, else the key
  std::string path;              ///< source, where source_hash is there too
  std::uint64_t encoder = 0;     ///< of the embedding: equal for embeddings that compare
  std::vector<float> embedding;  ///< empty if there is none
};

struct Scan {
  std::vector<InputShard> shards;
  std::vector<Item> items;       ///< in the order of the input, keys unique
  std::vector<Item> repeated;    ///< the same samples a second time
  std::set<std::string> fields;  ///< of all samples' JSON, filtered ones too
  std::uint64_t read = 0, filtered = 0;
  io::InputStreams streams;  ///< whether the input came whole
};

/// Where compressed tars are unpacked, so that samples can be read out of order.
std::string unpack_folder(const std::string& output);

/// Reads all shards that `options.inputs` name. Records of other kinds, samples that cannot be
/// joined or read, and keys that come twice with different contents go to `errors`. Throws
/// Error{usage} for a bad options.where, before anything is read.
Scan scan_shards(const ShardOptions& options, Slots& slots, Progress& progress,
                 io::ErrorLog& errors);

}  // namespace vfm::dataset
