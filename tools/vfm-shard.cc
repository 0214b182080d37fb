// vfm-shard: makes a dataset of shards.
// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <optional>
#include <sstream>

#include "base/error.h"
#include "base/json.h"
#include "cli/estimate.h"
#include "cli/options.h"
#include "cli/runner.h"
#include "dataset/dataset.h"
#include "dataset/sample_vector.h"
#include "shard/where.h"
#include "shard_estimate.h"

namespace {

std::optional<double> parse_threshold(const std::string& text) {
  if (text == "off") return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !(value > 0 && value <= 1))
    vfm::fail_usage("--duplicate-threshold: '{}' is neither a cosine above 0 and up to 1, nor off",
                    text);
  return value;
}

class ShardTool : public vfm::cli::Tool {
 public:
  std::string name() const override { return "vfm-shard"; }
  std::string description() const override {
    return "Joins, filters, deduplicates, bins, splits and shuffles samples into a dataset of "
           "shards.";
  }
  std::string examples() const override {
    return "vfm-clip raw/*.mp4 -o clips | vfm-caption | vfm-embed | vfm-shard -o dataset";
  }
  std::string version_details() const override { return vfm::shard::sql_version(); }

  void add_options(vfm::cli::Options& options) override {
    CLI::App& app = options.app();
    input_.add(options, "SHARD",
               "shards, manifests, folders of vfm-shard, or '-' for lines on standard input (the "
               "default)");
    output_.add(options, false, "the dataset's folder; needed but for --report alone");
    jobs_.add(options);
    member_.add(options);
    seed_.add(options);
    where_ = app.add_option("--where", options_.where,
                            "keep samples for which this SQL expression over their JSON fields is "
                            "true")
                 ->type_name("EXPRESSION");
    without_ = app.add_option("--without", options_.without,
                              "take out the samples and sources that this file names, one a line")
                   ->type_name("FILE");
    app.add_option("--duplicate-threshold", threshold_,
                   "drop samples whose embedding has this cosine to a better one, or off")
        ->type_name("COSINE")
        ->capture_default_str();
    by_ = app.add_option("--duplicate-method", method_,
                         "compare all embeddings with each other, or those in and around clusters")
              ->type_name("METHOD")
              ->check(CLI::IsMember({"auto", "exact", "clusters"}))
              ->capture_default_str();
    near_ = app.add_option("--near-duplicates", options_.near_member,
                           "the embedding that near duplicates go by")
                ->type_name("NAME.npy")
                ->default_str(vfm::dataset::kDefaultVector);
    app.add_flag("--keep-duplicates", options_.keep_duplicates, "keep near and exact duplicates")
        ->excludes(near_)
        ->excludes(by_);
    balance_ = app.add_option("--balance", balance_text_,
                              "leave out some of what there is too much of: by fields, or by "
                              "clusters of embeddings NAME.npy")
                   ->type_name("FIELD=STRENGTH,...");
    app.add_option("--balance-clusters", options_.balance.clusters,
                   "how many clusters --balance makes of embeddings")
        ->type_name("N")
        ->check(CLI::Range(std::size_t{1}, vfm::dataset::kMostClusters))
        ->needs(balance_)
        ->default_str("the square root of the number of samples");
    app.add_flag("--rekey", options_.rekey,
                 "give samples new keys, made of their contents and old keys");
    app.add_option("--split", split_, "parts of the dataset; no source is in two")
        ->type_name("NAME=SHARE,...")
        ->check(vfm::cli::not_blank)
        ->default_str("train=1");
    vfm::cli::add_bytes_option(options, "--shard-size", options_.shard_bytes,
                               "most bytes in a shard");
    add_edges(app, "--resolution-edges", resolution_, "256,480,720,1080,2160",
              "cut bins at these pixels of the shorter side, or none");
    add_edges(app, "--aspect-edges", aspect_, "0.65,0.88,1.16,1.55",
              "cut bins at these ratios of width to height, or none");
    add_edges(app, "--duration-edges", seconds_, "2,5,10,30", "cut bins at these seconds, or none");
    report_.add(options,
                "write a page with histograms, samples by their scores, bins and duplicates");
    scores_ = app.add_option("--report-scores", scores_text_,
                             "the numbers whose least and most the page shows")
                  ->type_name("FIELD,...")
                  ->default_str("those that may be scores");
    vfm::cli::add_dry_run(options, dry_run_);
  }

  void check() override {
    check_output();
    // An empty shell variable must not keep everything.
    if (where_->count() > 0 && options_.where.empty())
      vfm::fail_usage("--where: the expression is empty");
    if (!options_.where.empty()) vfm::shard::Where{options_.where};
    if (without_->count() > 0 && options_.without.empty())
      vfm::fail_usage("--without: the name of the file is empty");
    options_.duplicate_threshold = parse_threshold(threshold_);
    if (by_->count() > 0 && !options_.duplicate_threshold)
      vfm::fail_usage(
          "--duplicate-method says how to compare; leave out --duplicate-threshold off");
    if (method_ == "exact") options_.duplicate_method = vfm::dataset::DuplicateMethod::exact;
    if (method_ == "clusters") options_.duplicate_method = vfm::dataset::DuplicateMethod::clusters;
    if (near_->count() > 0) {
      vfm::dataset::check_vector_name("--near-duplicates", options_.near_member);
      if (!options_.duplicate_threshold)
        vfm::fail_usage(
            "--near-duplicates names what to compare; leave out "
            "--duplicate-threshold off");
    }
    if (balance_->count() > 0) check_balance();
    if (!split_.empty()) options_.split = vfm::curate::parse_split(split_);
    if (scores_->count() > 0) check_scores();
    options_.edges.resolution = vfm::curate::parse_edges(resolution_, "--resolution-edges");
    options_.edges.aspect = vfm::curate::parse_edges(aspect_, "--aspect-edges");
    options_.edges.seconds = vfm::curate::parse_edges(seconds_, "--duration-edges");
  }

  bool writes_manifest(const vfm::cli::Launch&) const override {
    return !dry_run_ && !output_.directory.empty();
  }

  long run(vfm::cli::Context& context) override {
    options_.inputs = input_.resolved();
    options_.output = output_.directory;
    options_.force = output_.force;
    options_.limits.member = member_.bytes;
    options_.seed = seed_.seed;
    options_.report = report_.path;
    vfm::Slots slots = context.slots(jobs_);
    if (dry_run_) {
      options_.report.clear();
      options_.report_scores.clear();
      return tell_shard_estimate(
          options_.inputs, options_.output, slots.threads(),
          [&](vfm::Progress& progress, vfm::io::ManifestWriter& manifest) {
            return vfm::dataset::run(options_, slots, progress, manifest, &counts_);
          },
          /*phases=*/true, [&] { return counts_json(); });
    }
    return vfm::dataset::run(options_, slots, context.progress, context.manifest);
  }

 private:
  /// Without a folder there is only a page.
  void check_output() const {
    if (!output_.directory.empty()) return;
    if (report_.path.empty() || dry_run_)
      vfm::fail_usage(
          "--output is required{}",
          dry_run_ ? "" : "; or give --report FILE.html alone, for a page and no dataset");
    if (output_.force) vfm::fail_usage("--force replaces a dataset; name its folder with --output");
  }

  void check_scores() {
    if (report_.path.empty()) vfm::fail_usage("--report-scores needs --report");
    std::istringstream fields(scores_text_ + ",");
    for (std::string field; std::getline(fields, field, ',');) {
      if (field.empty())
        vfm::fail_usage("--report-scores: '{}' names an empty field; give FIELD,...", scores_text_);
      options_.report_scores.push_back(field);
    }
  }

  void check_balance() {
    options_.balance.rules = vfm::dataset::parse_balance(balance_text_);
    const bool clusters = std::any_of(options_.balance.rules.begin(), options_.balance.rules.end(),
                                      [](const auto& rule) { return rule.clusters(); });
    if (options_.balance.clusters > 0 && !clusters)
      vfm::fail_usage("--balance-clusters: --balance names no embeddings, such as video.npy");
  }

  /// What became of the samples that were looked at.
  vfm::Json counts_json() const {
    return {{"read", counts_.read},         {"filtered", counts_.filtered},
            {"without", counts_.without},   {"duplicates", counts_.duplicates},
            {"balanced", counts_.balanced}, {"stay", counts_.stay}};
  }

  static void add_edges(CLI::App& app, const std::string& name, std::string& value,
                        const std::string& edges, const std::string& help) {
    value = edges;
    app.add_option(name, value, help)->type_name("EDGES")->capture_default_str();
  }

  vfm::cli::InputOptions input_;
  vfm::cli::OutputOptions output_;
  vfm::cli::JobOptions jobs_;
  vfm::cli::MemberOptions member_;
  vfm::cli::SeedOptions seed_;
  vfm::cli::ReportOptions report_;
  std::string threshold_ = "0.99", method_ = "auto", split_, resolution_, aspect_, seconds_;
  std::string balance_text_;
  std::string scores_text_;
  CLI::Option *scores_ = nullptr, *where_ = nullptr, *without_ = nullptr, *near_ = nullptr,
              *by_ = nullptr, *balance_ = nullptr;
  vfm::dataset::SampleCounts counts_;  // of --dry-run
  vfm::dataset::ShardOptions options_;
  bool dry_run_ = false;
};

}  // namespace

int main(int argc, char** argv) {
  return vfm::cli::run(argc, argv, {{"", vfm::cli::make<ShardTool>}});
}
