// Options of vfm-shard and `vfm-shard report` that choose samples and their splits and bins.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>

#include "base/error.h"
#include "cli/options.h"
#include "dataset/dataset.h"
#include "shard/where.h"
#include "shard_duplicates.h"

class ShardChoices {
 public:
  /// check() fills `options`, which must outlive this.
  explicit ShardChoices(vfm::dataset::ShardOptions& options) : options_(options) {}

  void add(vfm::cli::Options& options) {
    add_samples(options);
    duplicates_.add(options);
    add_places(options);
  }

  /// Call it in Tool::check().
  void check() {
    if (!options_.where.empty()) vfm::shard::Where{options_.where};
    if (balance_->given()) options_.balance.rules = vfm::dataset::parse_balance(balance_text_);
    const auto& rules = options_.balance.rules;
    if (options_.balance.clusters > 0 &&
        std::none_of(rules.begin(), rules.end(), [](const auto& rule) { return rule.clusters(); }))
      vfm::fail_usage("--balance-clusters: --balance names no embeddings, such as video.npy");
    duplicates_.check();
    if (split_ != kSplit) options_.split = vfm::curate::parse_split(split_);
    options_.edges.resolution = vfm::curate::parse_edges(resolution_, "--resolution-edges");
    options_.edges.aspect = vfm::curate::parse_edges(aspect_, "--aspect-edges");
    options_.edges.seconds = vfm::curate::parse_edges(seconds_, "--duration-edges");
    options_.seed = seed_.seed;
  }

 private:
  void add_samples(vfm::cli::Options& options) {
    options.group("Samples");
    options.add("--where", options_.where, "EXPRESSION", "keep samples for which this SQL is true")
        .check(vfm::cli::not_blank)
        .everyday()
        .manual(
            "Keep the samples for which this SQL expression over their JSON fields is true. See "
            "FILTERS.");
    options
        .add("--without", options_.without, "FILE", "take out samples and sources that FILE names")
        .check(vfm::cli::not_empty)
        .everyday()
        .manual("Take out the samples and sources named in this file, one a line. See FILTERS.");
    balance_ = &options.add("--balance", balance_text_, "FIELD=STRENGTH,...",
                            "leave out samples of too frequent values");
    balance_->everyday().manual(
        "Leave out samples whose values are too frequent. A rule names a field, or embeddings "
        "(_NAME.npy_) to cluster. A strength is above 0 and at most 1, the default. See BALANCE.");
    options
        .add("--balance-clusters", options_.balance.clusters, "N",
             "clusters of a --balance rule NAME.npy")
        .in(1, vfm::dataset::kMostClusters)
        .shown("the square root of the number of samples, at most 1024")
        .manual("Make _N_ clusters for each rule _NAME.npy_ of *--balance*, at most 4096.");
    options.flag("--rekey", options_.rekey, "give samples new keys, from their contents")
        .manual(
            "Give each sample a new key, a hash of its media and its old key. The JSON keeps the "
            "old key as _original_key_. Use it for foreign shards that all number their keys "
            "from 000000.");
  }

  void add_places(vfm::cli::Options& options) {
    options.group("Splits and bins");
    options.add("--split", split_, "NAME=SHARE,...", "divide sources into these parts")
        .check(vfm::cli::not_blank)
        .everyday()
        .manual(
            "Divide the sources into at most 255 parts with these shares of the samples. The "
            "shares sum to 1.");
    seed_.add(options);
    options.row("--seed").manual("Seed of shuffle, split and balance.");
    options
        .add("--resolution-edges", resolution_, "EDGES",
             "separate bins at these pixels of the shorter side")
        .manual(
            "Separate bins at these pixels of the shorter side: rising numbers with commas "
            "between them, or *none*.");
    options
        .add("--aspect-edges", aspect_, "EDGES", "separate bins at these ratios of width to height")
        .manual(
            "Separate bins at these ratios of width to height. By default 9:16, 3:4, 1:1, 4:3 "
            "and 16:9 are separate.");
    options.add("--duration-edges", seconds_, "EDGES", "separate bins at these seconds")
        .manual("Separate bins at these durations in seconds.");
  }

  static constexpr const char* kSplit = "train=1";

  vfm::dataset::ShardOptions& options_;
  vfm::cli::SeedOptions seed_;
  DuplicateChoices duplicates_{options_};
  std::string balance_text_, split_ = kSplit;
  std::string resolution_ = "256,480,720,1080,2160", aspect_ = "0.65,0.88,1.16,1.55",
              seconds_ = "2,5,10,30";
  vfm::cli::OptionRow* balance_ = nullptr;
};
