// SPDX-License-Identifier: Apache-2.0
#include "shard/part_output.h"

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "io/file.h"
#include "io/folder.h"
#include "io/input_lines.h"
#include "io/late_files.h"
#include "io/line_reader.h"
#include "io/places.h"
#include "shard/whole_parts.h"

namespace vfm::shard {

PartOutput::PartOutput(const PartTask& work, parts::Part& part, io::ManifestWriter& out)
    : work_(work),
      part_(part),
      out_(out),
      manifest_(part.path("manifest.jsonl")),
      errors_(part.path("errors.jsonl"), parts::command_of(work.tool)) {
  facts_.versions = work.versions;
}

void PartOutput::fault(const io::Fault& given, bool of_machine) {
  const io::Fault fault = part_.judged(given);
  errors_.add(fault);
  ++facts_.errors[std::string(to_string(fault.cause))];
  if (fault.cause == Cause::crash) crashed_.insert(fault.input);
  if (!of_machine && !may_pass(fault.cause)) return;
  ++passing_;
  const bool named = fault.message.find(fault.input) != std::string::npos;
  if (why_.empty()) why_ = named ? fault.message : fault.input + ": " + fault.message;
}

void PartOutput::record(const Json& record) {
  part_.check_lost();
  out_.write(record);
  manifest_.add(dump_json(named_in(work_.directory, record)) + "\n");
  ++facts_.records;
}

void PartOutput::wrote(const std::string& path, const Json& facts) {
  const std::string what = "the record of '" + path + "'";
  facts_.outputs.push_back({io::name_from(work_.directory, path),
                            static_cast<std::uint64_t>(need_integer(facts, "bytes", what)),
                            need_string(facts, "xxh3", what)});
}

void PartOutput::wrote_file(const std::string& path) {
  facts_.outputs.push_back({io::name_from(work_.directory, path), io::File::open_read(path).size(),
                            io::hash_file(path)});
}

long PartOutput::finish(const io::InputStreams& input) {
  errors_.finish();
  if (std::string why = input.broken_off(); !why.empty()) {
    part_.fail(why, crashed_);
  } else if (passing_ > 0) {
    part_.fail(why_, crashed_);
    log_error("part {} of '{}' is not complete, as {} may pass; run the same command again",
              part_.number(), work_.directory, passing_ == 1 ? "an error" : "errors");
  } else {
    manifest_.commit();
    part_.complete(facts_);
  }
  return passing_;
}

void for_each_part_record(const std::string& directory, const std::string& manifest,
                          const std::function<void(Json& record)>& use) {
  io::LineReader lines(io::File::open_read(manifest), "'" + manifest + "'");
  while (const auto line = lines.next()) {
    Json record;
    const auto rename = [&](Json& name) {
      name = io::join_path(directory, name.get<std::string>());
    };
    read_of_part(io::dir_name(manifest), manifest, [&] {
      record = parse_json(*line, "a line");
      need_string(record, "path", "a line");
      rename(record.at("path"));
      if (const auto columns = record.find("columns"); columns != record.end())
        for (Json& column : *columns)
          rename(column);
    });
    use(record);
  }
}

long for_each_part(const PartTask& work, io::ManifestWriter& out, const PartSteps& steps) {
  parts::RunTerms terms = steps.terms;
  terms.clips = work.clips;
  parts::PartRun run(work.directory, work.tool, work.choice, terms, steps.without_later,
                     work.progress ? *work.progress : no_progress());
  // A list that grows meanwhile makes parts of another run.
  const int listed = work.clips.empty() ? 0
                     : run.file().grows
                         ? run.parts()
                         : parts::count_parts(work.clips, "clip").value_or(run.parts());
  std::shared_ptr<LaterSources> later;
  const auto shards_of = [&](int part) {
    if (!work.clips.empty() && steps.without_later && !later) {
      later = std::make_shared<LaterSources>();
      later->add_all(work.clips);
    }
    return PartShards{part, run.parts(), work.clips,
                      parts::clip_parts_of(part, run.parts(), listed), later};
  };
  const auto digest_of = [&](int part) {
    return work.clips.empty() ? steps.digest_of(part, run.parts())
                              : shard::digest_of(shards_of(part), run.file(), terms.reads);
  };
  long failed = 0;
  while (auto part = run.next(digest_of)) {
    if (part->done()) {
      log_info("part {} of '{}' is complete already", part->number(), work.directory);
      for_each_part_record(work.directory, part->path("manifest.jsonl"),
                           [&](const Json& record) { out.write(record); });
      continue;
    }
    try {
      io::forget_vain_waits();
      PartOutput output(work, *part, out);
      const auto check = [&] { parts::check_begun(run.file(), work.directory, work.tool, terms); };
      check();
      const PartShards shards = shards_of(part->number());
      if (!shards.clips.empty())
        for (const io::Fault& fault : late_inputs(shards, run.file()))
          output.fault(fault);
      const io::InputStreams input =
          output.fails() ? io::InputStreams() : steps.make(*part, shards, output);
      part->check_lost();
      check();
      failed += output.finish(input);
      input.check_whole("what came is made and kept, and the part is not complete");
    } catch (const Error& error) {
      if (part->done()) throw;
      if (!part->lost() || error.kind() != ErrorKind::runtime) {
        part->fail(error.what());
        throw;
      }
      log_warning("{}; the part is left", error.what());
      ++failed;
    }
  }
  return failed;
}

std::string part_directory(const std::string& output, const std::vector<std::string>& inputs) {
  check_part_inputs(inputs);
  if (!output.empty()) return output;
  if (inputs.size() != 1 || !io::is_folder(inputs[0]))
    fail_usage("--part keeps its files in a folder: give one folder as the input, or -o DIR");
  return inputs[0];
}

void check_part_inputs(const std::vector<std::string>& inputs) {
  for (const std::string& input : inputs)
    if (input == "-" || input == io::kNames)
      fail_usage(
          "--part reads its input more than once: give a folder, or a file with the manifest, and "
          "not standard input");
}

}  // namespace vfm::shard
