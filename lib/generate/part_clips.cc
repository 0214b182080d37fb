// SPDX-License-Identifier: Apache-2.0
#include "generate/part_clips.h"

#include <fmt/core.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/xxh3.h"
#include "generate/clip_makers.h"
#include "generate/files/joined_clips.h"
#include "generate/files/latent_files.h"
#include "io/file.h"
#include "io/remote/address.h"
#include "io/remote/remote_file.h"
#include "io/text_writer.h"
#include "parts/part_run.h"
#include "share/ordered.h"

namespace vfm::generate {
namespace {

/// Returns whether ClipNames may give this name to a prompt of this text.
bool may_be_made_of(std::string_view name, const std::string& text) {
  constexpr std::size_t kHash = 16;
  const std::string words = slug(text);
  const std::string begin = words + (words.empty() ? "" : "-");
  return name.size() == begin.size() + kHash && name.starts_with(begin) &&
         name.find_first_not_of("0123456789abcdef", begin.size()) == std::string_view::npos;
}

/// Returns the size and the time of the last change of a file, or the version of an object, or ""
/// if there is none.
std::string stamp_of(const std::string& path) {
  if (io::is_remote(path)) {
    const auto object = io::RemoteFile::open_if_there(path);
    return object ? fmt::format("{} {}", object->size(), object->version()) : "";
  }
  std::error_code error;
  const auto bytes = std::filesystem::file_size(path, error);
  const auto changed = std::filesystem::last_write_time(path, error);
  return error ? "" : fmt::format("{} {}", bytes, changed.time_since_epoch().count());
}

/// Returns all that decides the results of a prompt, apart from the model.
std::string described(const PromptLine& line) {
  if (!line.error.empty()) return pack(line.place, line.where, line.error);
  std::string text = pack(line.place, line.where, line.prompt);
  const GivenFiles& files = line.prompt.files;
  for (const GivenFile* file :
       {&files.condition, &files.noise, &files.embedding, &files.negative_embedding})
    if (!file->path.empty()) text += stamp_of(file->path);
  return text;
}

PromptReader read_prompts(const GenerateJob& job) {
  return PromptReader(job.prompts, job.defaults, true);
}

/// Makes parts in the process that reads the prompts.
class PartClips {
 public:
  PartClips(const GenerateJob& job, ClipMakers& makers, share::Slots& slots, Progress& progress)
      : job_(job), makers_(makers), slots_(slots), progress_(progress) {}

  /// Asks for the first clip of the input, which measures FP8 or 8-bit weights, as without parts.
  void ask_for_first() {
    PromptReader prompts = read_prompts(job_);
    bool any = false;
    for (bool made = false; !made;) {
      std::optional<PromptLine> line = prompts.next();
      if (!line) break;
      any = true;
      made = line->error.empty() && makers_.ask(std::move(line->prompt)).error.empty();
    }
    if (!any) fail("no prompts are given: give some, or lines of them on standard input");
  }

  /// Returns a hash of the model and the options, which all parts have in common. Needs
  /// ask_for_first().
  std::string settings() const {
    return hash_hex(
        pack(makers_.in_use(), makers_.output().encoder(), job_.quality, job_.latents_only));
  }

  std::string digest(int part, int parts) {
    if (digests_.empty()) read_digests(parts);
    return digests_[part];
  }

  io::InputStreams make(const parts::Part& part, int parts, shard::PartOutput& output) {
    makers_.begin_part(part.temporary());
    PromptReader prompts = read_prompts(job_);
    io::TextWriter places(part.path(kPlaces));
    AskedClips clips(job_, makers_, [&]() -> std::optional<PromptLine> {
      while (std::optional<PromptLine> line = prompts.next())
        if (part_of_prompt(*line, parts) == part.number()) return line;
      return std::nullopt;
    });
    const auto next = [&] { return clips.next(); };
    const auto done = [&](Result& result) {
      if (!result.asked.error.empty())
        return output.fault({result.asked.where, result.asked.error, result.asked.cause});
      const std::string path = need_string(result.record, "path", "the record");
      output.wrote(path, result.record);
      output.wrote_file(record_file(path));
      places.add(fmt::format("{}\n", result.asked.place));
      output.record(result.record);
      log_clip(result.record, result.made ? std::optional(result.seconds) : std::nullopt);
      progress_.add();
    };
    std::exception_ptr failed;  // Other ranks must end the part with this one.
    const auto next_of_round = [&] { return failed ? std::nullopt : next(); };
    const auto done_of_round = [&](Result& result) {
      if (failed) return;
      try {
        done(result);
      } catch (...) {
        failed = std::current_exception();
      }
    };
    if (!makers_.make_in_rounds(next_of_round, done_of_round, slots_))
      share::for_each_ordered<Asked, Result>(
          slots_, next, [&](Asked& asked) { return makers_.make(asked); }, done);
    if (failed) std::rethrow_exception(failed);
    places.commit();
    return prompts.streams();
  }

 private:
  /// Returns the file of a clip's or a latent's record, which is beside it.
  std::string record_file(const std::string& path) const {
    const std::string_view end = job_.latents_only ? kLatentsExtension : ".mp4";
    return path.substr(0, path.size() - end.size()) +
           (job_.latents_only ? kLatentsRecordExtension : ".json");
  }

  void read_digests(int parts) {
    const std::optional<int> only = job_.parts->choice.part;
    const std::string settings = this->settings();
    if (only) digests_[*only] = settings;
    PromptReader prompts = read_prompts(job_);
    while (const std::optional<PromptLine> line = prompts.next()) {
      const int part = part_of_prompt(*line, parts);
      if (only && part != *only) continue;
      std::string& digest = digests_.try_emplace(part, settings).first->second;
      digest = hash_hex(digest + described(*line));
    }
    if (!only)
      for (int part = 0; part < parts; ++part)
        digests_.try_emplace(part, settings);
  }

  const GenerateJob& job_;
  ClipMakers& makers_;
  share::Slots& slots_;
  Progress& progress_;
  std::map<int, std::string> digests_;
};

}  // namespace

int part_of_prompt(const PromptLine& line, int parts) {
  std::string key = line.where;  // A line that is no prompt.
  if (line.error.empty()) {
    const Prompt& prompt = line.prompt;
    const bool named = !prompt.name.empty() && !may_be_made_of(prompt.name, prompt.text);
    key = named ? prompt.name : prompt.text;
  }
  return static_cast<int>(xxh3_64(key.data(), key.size()) % static_cast<unsigned>(parts));
}

long generate_parts(const GenerateJob& job, ClipMakers& makers, share::Slots& slots,
                    Progress& progress) {
  long failed = 0;
  if (makers.first()) {
    progress.start("clips", 0);
    // Refuses a wrong number of parts before the input is read.
    parts::PartRun(job.parts->directory, job.parts->tool, job.parts->choice);
    PartClips clips(job, makers, slots, progress);
    clips.ask_for_first();
    shard::PartTask task = *job.parts;
    task.versions[kSettings] = clips.settings();
    failed = shard::for_each_part(
        task, makers.output().manifest(),
        {.digest_of = [&](int part, int parts) { return clips.digest(part, parts); },
         .make =
             [&](const parts::Part& part, const shard::PartShards& shards,
                 shard::PartOutput& output) { return clips.make(part, shards.parts, output); }});
    makers.begin_part("");
  } else {
    while (makers.begin_part(""))
      makers.make_in_rounds({}, {}, slots);
  }
  makers.finished();
  return failed;
}

}  // namespace vfm::generate
