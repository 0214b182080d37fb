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
#include "io/places.h"
#include "io/process_name.h"
#include "io/streams.h"
#include "io/text_writer.h"
#include "media/version.h"
#include "parts/clip_list.h"
#include "parts/part_run.h"

namespace vfm::clip {
namespace {

namespace fs = std::filesystem;

constexpr const char* kUnfinished = "unfinished-";

/// A folder for the unfinished work of this process. The name has a random part, because another
/// host may have a process of the same name, and removes the folders of earlier processes.
class UnfinishedFolder {
 public:
  /// Makes the folder in the folder of a part.
  explicit UnfinishedFolder(const std::string& part)
      : path_(io::join_path(part,
                            fmt::format("{}{}-{:08x}", kUnfinished, io::ProcessName::self().name(),
                                        std::random_device()()))) {
    std::error_code wrong;
    std::vector<fs::path> earlier;
    for (fs::directory_iterator at(part, wrong), end; !wrong && at != end; at.increment(wrong))
      if (at->path().filename().string().starts_with(kUnfinished)) earlier.push_back(at->path());
    std::sort(earlier.begin(), earlier.end());
    io::make_directories(path_);
    for (const fs::path& folder : earlier)
      take_over(folder);
  }
  const std::string& path() const { return path_; }
  void remove() const {
    std::error_code wrong;  // The folder is of no use, and does no harm.
    fs::remove_all(path_, wrong);
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

  std::string path_;
};

/// Collects what a part gives, for its manifest and its marker.
class PartTally {
 public:
  PartTally(const std::string& directory, const parts::Part& part)
      : directory_(directory),
        id_(part.inputs().substr(0, 16)),
        manifest_(part.path("manifest.jsonl")) {
    line(io::begin_record("vfm-clip", id_, io::working_folder()));
  }
  void add(const Json& record) {
    line(record);
    ++results_.records;
    if (get_string(record, "kind") != "shard") return;
    const std::string path = io::name_from(directory_, need_string(record, "path", "the record"));
    results_.outputs.push_back({path,
                                static_cast<std::uint64_t>(need_integer(record, "bytes", path)),
                                need_string(record, "xxh3", path)});
  }
  void add(const io::Fault& fault) {
    if (!is_of_machine(fault))
      ++results_.errors[std::string(to_string(fault.cause))];
    else if (why_failed_.empty())
      why_failed_ = fault.message;
  }
  /// Returns the first fault that may pass, or "".
  const std::string& why_failed() const { return why_failed_; }
  /// Writes the manifest. Returns the results, for the marker.
  const parts::PartResults& finish() {
    line(io::end_record(id_, results_.records, Json::object(), 0));
    manifest_.commit();
    std::string ffmpeg = media::ffmpeg_version();
    ffmpeg.erase(std::min(ffmpeg.size(), ffmpeg.find('\n')));
    results_.versions["ffmpeg"] = ffmpeg;
    return results_;
  }

 private:
  void line(const Json& record) { manifest_.add(dump_json(record) + "\n"); }

  std::string directory_, id_;
  io::TextWriter manifest_;
  parts::PartResults results_;
  std::string why_failed_;
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

  /// Returns false if the part failed, or if another process has taken it.
  bool make(parts::Part& part) {
    const UnfinishedFolder unfinished(part.folder());
    PartTally tally(options_.directory, part);
    try {
      cut(part, unfinished.path(), tally);
    } catch (const Error& error) {
      if (!part.lost()) {
        part.fail(error.what());
        throw;
      }
    }
    if (part.lost()) {
      log_warning("another process has taken part {}, which this one did too slowly; it is left",
                  part.number());
      unfinished.remove();
      return false;
    }
    if (!tally.why_failed().empty()) {
      part.fail(tally.why_failed());
      return false;
    }
    const parts::PartResults& results = tally.finish();
    unfinished.remove();  // before the marker, because nobody looks into a finished part
    part.complete(results);
    return true;
  }

  /// Prints the records of a part that is done.
  void print(const parts::Part& part) {
    const std::string path = part.path("manifest.jsonl");
    io::ManifestReader reader({path}, [&](const io::Fault& fault) {
      fail("'{}' is damaged: {}: {}", path, fault.input, fault.message);
    });
    while (const auto record = reader.next())
      manifest_.write(record->json);
    reader.streams().check_whole("remove the part's done.json, then do it again");
    log_info("part {} is done already", part.number());
  }

 private:
  void cut(const parts::Part& part, const std::string& unfinished, PartTally& tally) {
    const ListedPart listed{.errors = part.path("errors.jsonl"),
                            .unfinished = unfinished,
                            .digits = digits_,
                            .lost = [&] { return part.lost(); },
                            .record = [&](const Json& record) { tally.add(record); },
                            .fault = [&](const io::Fault& fault) { tally.add(fault); }};
    options_.part = &listed;
    options_.inputs = {parts::list_path(options_.directory, part.number())};
    run(options_, slots_, progress_, manifest_);
  }

  ClipOptions options_;
  int digits_;
  share::Slots& slots_;
  Progress& progress_;
  io::ManifestWriter& manifest_;
  Json settings_;
};

}  // namespace

long run_parts(const ClipOptions& options, const parts::PartChoice& choice, share::Slots& slots,
               Progress& progress, io::ManifestWriter& manifest) {
  const std::optional<parts::ClipList> list = parts::read_list(options.directory);
  if (!list)
    fail_usage("'{}' has no list of parts; make it with: vfm-clip list VIDEO... -o {} -n N",
               options.directory, options.directory);
  PartsOfList work(options, *list, slots, progress, manifest);
  parts::PartRun run(options.directory, "clip", choice, work.terms(), false, progress);
  long failed = 0;
  while (std::optional<parts::Part> part =
             run.next([&](int number) { return work.digest_of(number); })) {
    if (part->done())
      work.print(*part);
    else if (!work.make(*part))
      ++failed;
  }
  return failed;
}

}  // namespace vfm::clip
