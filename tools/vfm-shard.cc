// vfm-shard: makes a dataset of shards.
// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <cstdlib>
#include <optional>

#include "base/error.h"
#include "cli/estimate.h"
#include "cli/options.h"
#include "cli/runner.h"
#include "dataset/dataset.h"
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
  std::string example() const override {
    return "vfm-clip raw/*.mp4 -o clips | vfm-caption | vfm-embed | vfm-shard -o dataset";
  }
  std::string version_details() const override { return vfm::shard::sql_version(); }

  void add_options(CLI::App& app) override {
    input_.add(app, "SHARD",
               "shards, manifests, folders of vfm-shard, or '-' for lines on standard input (the "
               "default)");
    output_.add(app, true, "the dataset's folder");
    jobs_.add(app);
    member_.add(app);
    seed_.add(app);
    where_ = app.add_option("--where", options_.where,
                            "keep samples for which this SQL expression over their JSON fields is "
                            "true")
                 ->type_name("EXPRESSION");
    app.add_option("--duplicate-threshold", threshold_,
                   "drop samples whose video embedding has this cosine to a better one, or off")
        ->type_name("COSINE")
        ->capture_default_str();
    app.add_flag("--keep-duplicates", options_.keep_duplicates, "keep near and exact duplicates");
    app.add_flag("--rekey", options_.rekey,
                 "give samples new keys, made of their contents and old keys");
    app.add_option("--split", split_, "parts of the dataset; no source is in two")
        ->type_name("NAME=SHARE,...")
        ->default_str("train=1");
    vfm::cli::add_bytes_option(app, "--shard-size", options_.shard_bytes, "most bytes in a shard");
    add_edges(app, "--resolution-edges", resolution_, "256,480,720,1080,2160",
              "cut bins at these pixels of the shorter side, or none");
    add_edges(app, "--aspect-edges", aspect_, "0.65,0.88,1.16,1.55",
              "cut bins at these ratios of width to height, or none");
    add_edges(app, "--duration-edges", seconds_, "2,5,10,30", "cut bins at these seconds, or none");
    report_.add(app, "write a page with histograms, bins and duplicates");
    vfm::cli::add_dry_run(app, dry_run_);
  }

  void check() override {
    // An empty shell variable must not keep everything.
    if (where_->count() > 0 && options_.where.empty())
      vfm::fail_usage("--where: the expression is empty");
    options_.duplicate_threshold = parse_threshold(threshold_);
    if (!split_.empty()) options_.split = vfm::curate::parse_split(split_);
    options_.edges.resolution = vfm::curate::parse_edges(resolution_, "--resolution-edges");
    options_.edges.aspect = vfm::curate::parse_edges(aspect_, "--aspect-edges");
    options_.edges.seconds = vfm::curate::parse_edges(seconds_, "--duration-edges");
  }

  bool writes_manifest(const vfm::cli::Launch&) const override { return !dry_run_; }

  long run(vfm::cli::Context& context) override {
    options_.inputs = input_.resolved();
    options_.output = output_.directory;
    options_.force = output_.force;
    options_.limits.member = member_.bytes;
    options_.seed = seed_.seed;
    options_.report = report_.path;
    vfm::Slots slots(jobs_.resolved(), context.makeflags);
    if (dry_run_) {
      options_.report.clear();
      return tell_shard_estimate(
          options_.inputs, options_.output, slots.threads(),
          [&](vfm::Progress& progress, vfm::io::ManifestWriter& manifest) {
            return vfm::dataset::run(options_, slots, progress, manifest);
          },
          /*phases=*/true);
    }
    return vfm::dataset::run(options_, slots, context.progress, context.manifest);
  }

 private:
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
  std::string threshold_ = "0.99", split_, resolution_, aspect_, seconds_;
  CLI::Option* where_ = nullptr;
  vfm::dataset::ShardOptions options_;
  bool dry_run_ = false;
};

}  // namespace

int main(int argc, char** argv) {
  ShardTool tool;
  return vfm::cli::run(argc, argv, tool);
}
