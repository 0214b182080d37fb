// SPDX-License-Identifier: Apache-2.0
#include "clip/part.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <string>
#include <system_error>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "clip/clip.h"
#include "clip/store/listed.h"
#include "io/file.h"
#include "io/folder.h"
#include "io/process_name.h"
#include "media/version.h"
#include "parts/clip_list.h"
#include "parts/part_run.h"
#include "shard/part_output.h"

namespace vfm::clip {
namespace {

namespace fs = std::filesystem;

constexpr const char* kUnfinished = "unfinished-";

/// A folder for the unfinished work of this process. The name has a random part, because another
/// host may have a process of the same name, and removes the folders of earlier processes. The
/// folder of a part in a bucket is local, so only processes of the same machine take its work over.
class UnfinishedFolder {
 public:
  /// Makes the folder in the folder of a part.
  explicit UnfinishedFolder(const parts::Part& part)
      : part_(part),
        parent_(io::scratch_folder_of(part.folder())),
        path_(io::join_path(parent_,
                            fmt::format("{}{}-{:08x}", kUnfinished, io::ProcessName::self().name(),
                                        std::random_device()()))) {
    std::error_code wrong;
    std::vector<fs::path> earlier;
    for (fs::directory_iterator at(parent_, wrong), end; !wrong && at != end; at.increment(wrong))
      if (at->path().filename().string().starts_with(kUnfinished)) earlier.push_back(at->path());
    std::sort(earlier.begin(), earlier.end());
    io::make_directories(path_);
    for (const fs::path& folder : earlier)
      take_over(folder);
  }
  /// Another process that has the part took what it can use.
  ~UnfinishedFolder() {
    if (part_.lost()) remove();
  }
  UnfinishedFolder(const UnfinishedFolder&) = delete;

  const std::string& path() const { return path_; }
  void remove() const {
    std::error_code wrong;  // The folder is of no use, and does no harm.
    fs::remove_all(path_, wrong);
    if (parent_ != part_.folder()) io::remove_if_empty(parent_);
  }

 private:
  /// Copies the files, because the earlier process may still be writing them.
  void take_over(const fs::path& folder) const {
    std::error_code wrong;
    for (fs::directory_iterator at(folder, wrong), end; !wrong && at != end; at.increment(wrong)) {
      std::error_code failed;
      fs::copy_file(at->path(), fs::path(path_) / at->path().filename(),
                    fs::copy_options::skip_existing, failed);
      if (failed) log_info("'{}' is not used: {}", at->path().string(), failed.message());
    }
    fs::remove_all(folder, wrong);
  }

  const parts::Part& part_;
  std::string parent_, path_;
};

/// Does the parts, one after the other.
class PartsOfList {
 public:
  PartsOfList(const ClipOptions& options, const parts::ClipList& list, share::Slots& slots,
              Progress& progress, io::ManifestWriter& manifest)
      : options_(options),
        digits_(list.digits),
        slots_(slots),
        progress_(progress),
        manifest_(manifest) {
    options_.shard_bytes = list.shard_bytes;
    ClipOptions chosen = options_;
    choose_encoders(chosen.recipe);
    settings_ = clip_settings(chosen);
  }

  /// What all processes agree on.
  parts::RunTerms terms() const {
    parts::RunTerms terms;
    terms.settings = settings_;
    for (const auto& [member, option] : {std::pair("detector", "--detector-model"),
                                         {"detector_model", "--detector-model"},
                                         {"threshold", "--threshold"},
                                         {"gradual", "--no-gradual"},
                                         {"stitch", "--stitch"},
                                         {"stitch_model", "--stitch"},
                                         {"stitch_sound", "--stitch-sound"},
                                         {"min_seconds", "--min-length"},
                                         {"max_seconds", "--max-length"},
                                         {"stride", "--stride"},
                                         {"stream", "--stream"},
                                         {"encoder", "--encoder"},
                                         {"preset", "--encoder"},
                                         {"hdr_encoder", "--encoder"},
                                         {"smart_encoder", "--encoder"},
                                         {"encode", "--smart-cut"},
                                         {"hdr", "--keep-hdr"},
                                         {"quality", "--quality"},
                                         {"audio", "--audio"},
                                         {"scale", "--scale"},
                                         {"fps", "--fps"},
                                         {"crop", "--crop"},
                                         {"deinterlace", "--no-deinterlace"}})
      terms.options[std::string("recipe.") + member] = option;
    terms.options["verify"] = "--verify";
    terms.options["names"] = "--readable-names";
    return terms;
  }

  std::string digest_of(int part) const {
    return hash_hex(dump_json(settings_) +
                    io::hash_file(parts::list_path(options_.directory, part)));
  }

  void make(const parts::Part& part, shard::PartOutput& output) {
    const UnfinishedFolder unfinished(part);
    const ListedPart listed{
        .unfinished = unfinished.path(),
        .digits = digits_,
        .lost = [&] { return part.lost(); },
        .record =
            [&](const Json& record) {
              output.record(record);
              if (get_string(record, "kind") == "shard")
                output.wrote(need_string(record, "path", "the record"), record);
            },
        .fault = [&](const io::Fault& fault) { output.fault(fault, is_of_machine(fault)); },
        .judged = [&](io::Fault fault) { return part.judged(std::move(fault)); }};
    options_.part = &listed;
    options_.inputs = {parts::list_path(options_.directory, part.number())};
    run(options_, slots_, progress_, manifest_);
    // Before the marker, because nobody looks into a finished part. The next try uses the clips of
    // a part that fails.
    if (!output.fails()) unfinished.remove();
  }

 private:
  ClipOptions options_;
  int digits_;
  share::Slots& slots_;
  Progress& progress_;
  io::ManifestWriter& manifest_;
  Json settings_;
};

std::string version_of_ffmpeg() {
  const std::string version = media::ffmpeg_version();
  return version.substr(0, version.find('\n'));
}

}  // namespace

long run_parts(const ClipOptions& options, const parts::PartChoice& choice, share::Slots& slots,
               Progress& progress, io::ManifestWriter& manifest) {
  const std::optional<parts::ClipList> list = parts::read_list(options.directory);
  if (!list)
    fail_usage("'{}' has no list of parts; make it with: vfm-clip list VIDEO... -o {} -n N",
               options.directory, options.directory);
  PartsOfList work(options, *list, slots, progress, manifest);
  return shard::for_each_part(
      {.directory = options.directory,
       .tool = "clip",
       .choice = choice,
       .versions = {{"ffmpeg", version_of_ffmpeg()}},
       .progress = &progress},
      manifest,
      {.terms = work.terms(),
       .digest_of = [&](int part, int) { return work.digest_of(part); },
       .make =
           [&](const parts::Part& part, const shard::PartShards&, shard::PartOutput& output) {
             work.make(part, output);
             return io::InputStreams();
           }});
}

}  // namespace vfm::clip
