// SPDX-License-Identifier: Apache-2.0
#include "shard_choices.h"

#include <algorithm>
#include <cstdlib>

#include "base/error.h"
#include "dataset/sample_vector.h"
#include "shard/where.h"

namespace {

std::string cosine_fault(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  const bool fits = !text.empty() && *end == '\0' && value > 0 && value <= 1;
  return fits ? "" : "'" + text + "' is not a cosine above 0 and up to 1";
}

}  // namespace

void ShardChoices::add(vfm::cli::Options& options) {
  add_samples(options);
  add_duplicates(options);
  add_places(options);
}

void ShardChoices::add_size(vfm::cli::Options& options) {
  vfm::cli::add_bytes_option(options, "--shard-size", options_.shard_bytes,
                             "write shards up to this size")
      .shown("500MB")
      .everyday()
      .manual("Maximum size of a shard before it is compressed, such as _500MB_ or _2GiB_.");
  options.add("--compress", compress_, "none|zstd", "write plain shards or .tar.zst")
      .one_of({"none", "zstd"})
      .manual(
          "*zstd* writes shards _X.tar.zst_, for archives and copies. Programs of vfm read them as "
          "they read other shards. See COMPRESSED SHARDS in *vfm-shard*(5).");
}

void ShardChoices::explain(vfm::cli::Options& options) {
  for (const char* name : {"--where", "--without", "--balance", "--balance-clusters", "--rekey",
                           "--duplicate-threshold", "--duplicate-method", "--duplicate-vector",
                           "--keep-near-duplicates", "--keep-duplicates", "--split", "--seed",
                           "--resolution-edges", "--aspect-edges", "--duration-edges"})
    options.row(name).explained_in("vfm-shard(1)");
}

void ShardChoices::check() {
  if (!options_.where.empty()) vfm::shard::Where{options_.where};
  if (balance_->given()) options_.balance.rules = vfm::dataset::parse_balance(balance_text_);
  const auto& rules = options_.balance.rules;
  if (options_.balance.clusters > 0 &&
      std::none_of(rules.begin(), rules.end(), [](const auto& rule) { return rule.clusters(); }))
    vfm::fail_usage("--balance-clusters: --balance names no embeddings, such as video.npy");
  check_duplicates();
  if (split_ != kSplit) options_.split = vfm::curate::parse_split(split_);
  options_.edges.resolution = vfm::curate::parse_edges(resolution_, "--resolution-edges");
  options_.edges.aspect = vfm::curate::parse_edges(aspect_, "--aspect-edges");
  options_.edges.seconds = vfm::curate::parse_edges(seconds_, "--duration-edges");
  options_.seed = seed_.seed;
  options_.compress = compress_ == "zstd";
}

void ShardChoices::add_samples(vfm::cli::Options& options) {
  options.group("Samples");
  options.add("--where", options_.where, "EXPRESSION", "keep samples for which this SQL is true")
      .check(vfm::cli::not_blank)
      .everyday()
      .manual(
          "Keep the samples for which this SQL expression over their JSON fields is true. See "
          "FILTERS.");
  options.add("--without", options_.without, "FILE", "take out samples and sources that FILE names")
      .check(vfm::cli::not_empty)
      .everyday()
      .manual("Take out the samples and sources named in this file, one a line. See FILTERS.");
  balance_ = &options.add("--balance", balance_text_, "FIELD=STRENGTH,...",
                          "leave out samples whose values are too frequent");
  balance_->everyday().manual(
      "Leave out samples whose values are too frequent. A rule names a field, or embeddings "
      "(_NAME.npy_) to cluster. A strength is above 0 and at most 1. The default is 1. See "
      "BALANCE.");
  options
      .add("--balance-clusters", options_.balance.clusters, "N",
           "clusters of a --balance rule NAME.npy")
      .in(1, vfm::dataset::kMostClusters)
      .shown("the square root of the number of samples, at most 1024")
      .manual("Make _N_ clusters for each rule _NAME.npy_ of *--balance*, at most 4096.");
  options.flag("--rekey", options_.rekey, "give samples new keys, from their contents")
      .manual(
          "Give each sample a new key, a hash of its media and its old key. The JSON keeps the old "
          "key as _original_key_. Use this option for foreign shards that all number their keys "
          "from 000000.");
}

void ShardChoices::add_duplicates(vfm::cli::Options& options) {
  options.group("Duplicates");
  threshold_ = &options.add("--duplicate-threshold", threshold_value_, "COSINE",
                            "minimum cosine of near duplicates");
  threshold_->check(cosine_fault)
      .everyday()
      .manual(
          "Drop a sample if its embedding and the embedding of a kept sample have at least this "
          "cosine, above 0 and at most 1.");
  method_ = &options.add("--duplicate-method", method_value_, "auto|exact|clusters",
                         "compare all pairs, or pairs in and around clusters");
  method_->one_of({"auto", "exact", "clusters"})
      .manual("Compare all pairs, or only pairs in and around clusters. See NEAR DUPLICATES.");
  vector_ = &options.add("--duplicate-vector", options_.near_member, "NAME.npy",
                         "compare this embedding");
  vector_->shown(vfm::dataset::kDefaultVector)
      .manual("Compare this embedding, for example _text.npy_ of captions.");
  options.flag("--keep-near-duplicates", keep_near_, "drop only exact duplicates")
      .everyday()
      .manual("Drop only samples with the same media bytes.");
  options.flag("--keep-duplicates", options_.keep_duplicates, "drop no duplicates")
      .everyday()
      .manual("Drop neither near nor exact duplicates.");
}

void ShardChoices::check_duplicates() {
  const bool kept = keep_near_ || options_.keep_duplicates;
  if (kept && (threshold_->given() || method_->given() || vector_->given()))
    vfm::fail_usage(
        "near duplicates are kept, so nothing is compared: leave out --duplicate-threshold, "
        "--duplicate-method and --duplicate-vector");
  options_.duplicate_threshold = threshold_value_;
  if (keep_near_) options_.duplicate_threshold.reset();
  if (method_value_ == "exact") options_.duplicate_method = vfm::dataset::DuplicateMethod::exact;
  if (method_value_ == "clusters")
    options_.duplicate_method = vfm::dataset::DuplicateMethod::clusters;
  if (vector_->given()) vfm::dataset::check_vector_name("--duplicate-vector", options_.near_member);
}

void ShardChoices::add_places(vfm::cli::Options& options) {
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
          "Separate bins at these lengths of the shorter side, in pixels: increasing numbers, "
          "separated by commas, or *none*.");
  options
      .add("--aspect-edges", aspect_, "EDGES", "separate bins at these ratios of width to height")
      .manual(
          "Separate bins at these ratios of width to height. By default 9:16, 3:4, 1:1, 4:3 "
          "and 16:9 are separate.");
  options.add("--duration-edges", seconds_, "EDGES", "separate bins at these durations in seconds")
      .manual("Separate bins at these durations in seconds.");
}
