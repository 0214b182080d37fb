// Parts of prompts, made by one process or by ranks in rounds that a test stands for.
// SPDX-License-Identifier: Apache-2.0
#include "generate/part_clips.h"

#include <fcntl.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "base/error.h"
#include "base/json.h"
#include "generate/clip_makers.h"
#include "generate/files/joined_clips.h"
#include "io/file.h"
#include "io/store.h"
#include "parts/part_run.h"
#include "support/heard_log.h"
#include "support/part_leases.h"
#include "support/temporary_folder.h"

using namespace vfm;
using namespace vfm::generate;

namespace {

Json record_of(const std::string& path, const std::string& name) {
  return {{"kind", "latents"}, {"path", path}, {"bytes", name.size()}, {"xxh3", "7"},
          {"frames", 1},       {"width", 2},   {"height", 2}};
}

/// Makes clips without a model: a file with the text of its prompt, and a record beside it.
class PretendedMakers : public ClipMakers {
 public:
  PretendedMakers(const std::string& folder, io::ManifestWriter& manifest)
      : folder_(folder), output_("-", "", no_progress(), manifest, false) {}

  bool first() const override { return is_first; }
  bool make_in_rounds(const std::function<std::optional<Asked>()>& next,
                      const std::function<void(Result&)>& done, share::Slots&) override {
    if (!in_rounds) return false;
    ++rounds;
    if (!is_first) return true;
    // Two clips a round, as two ranks make them: both are made before the first is told.
    for (bool more = true; more;) {
      std::vector<Asked> round;
      for (std::optional<Asked> asked; round.size() < 2 && (asked = next());)
        round.push_back(*std::move(asked));
      more = !round.empty();
      for (Asked& asked : round) {
        Result result = make(asked);
        done(result);
      }
    }
    return true;
  }
  bool begin_part(const std::string& temporary) override {
    begun.push_back(!temporary.empty());
    return is_first ? !temporary.empty() : begun.size() <= 2;
  }
  ClipFolder& output() override { return output_; }
  const ModelInUse& in_use() const override { return model; }
  Asked ask(Prompt prompt) override {
    Asked asked;
    if (prompt.text == "none") {
      asked.error = "it cannot be made";
      return asked;
    }
    asked.request = std::make_shared<NamedRequest>();
    asked.request->name = prompt.text;
    return asked;
  }
  std::optional<double> output_error() const override { return std::nullopt; }
  Result make(Asked& asked) override {
    Result result;
    result.asked = asked;
    if (!asked.error.empty()) return result;
    const std::string name = asked.request->name, path = folder_ + "/" + name + ".mp4";
    made.push_back(name);
    io::write_file(path, name);
    io::write_file(folder_ + "/" + name + ".json", "{}");
    result.record = record_of(path, name);
    if (name == bad) result.record->erase("path");
    return result;
  }
  void report(const std::string&) override {}
  void finished() override { is_finished = true; }

  bool is_first = true, in_rounds = false, is_finished = false;
  int rounds = 0;
  std::vector<bool> begun;        ///< Whether a part began, for each call of begin_part().
  std::vector<std::string> made;  ///< Names of the clips.
  std::string bad;                ///< The clip whose record is useless.
  ModelInUse model;

 private:
  std::string folder_;
  ClipFolder output_;
};

struct PretendedJob {
  TemporaryFolder folder;
  io::FileStore store{folder / "parts"};
  GenerateJob job;
  bool in_rounds = false, is_first = true;
  std::string bad, hash = "h";
  std::vector<bool> begun;
  std::vector<std::string> made;
  int rounds = 0;
  bool is_finished = false;

  explicit PretendedJob(const parts::PartChoice& choice) {
    job.prompts = {"a", "b", "none", "c", "d", "e"};
    job.parts = shard::PartTask{folder.path, "generate", choice, {}};
  }
  /// Returns the records that were printed.
  std::string work() {
    const std::string path = folder / "printed";
    const io::File file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644), path);
    io::ManifestWriter manifest(file.fd());
    PretendedMakers makers(folder.path, manifest);
    makers.in_rounds = in_rounds, makers.is_first = is_first, makers.bad = bad;
    makers.model.hash = hash;
    share::Slots slots(1);
    const HeardLog heard;
    const struct Outcome {
      PretendedJob& job;
      PretendedMakers& makers;
      ~Outcome() {
        job.begun = makers.begun, job.made = makers.made;
        job.rounds = makers.rounds, job.is_finished = makers.is_finished;
      }
    } outcome{*this, makers};
    const long failed = generate_parts(job, makers, slots, no_progress());
    CHECK(failed == 0);
    return io::read_file(path);
  }
  std::string joined() const {
    const std::string path = folder / "joined";
    const io::File file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644), path);
    io::ManifestWriter manifest(file.fd());
    join_generated(folder.path, manifest);
    return io::read_file(path);
  }
  std::string line(const std::string& name) const {
    return dump_json(record_of(folder / (name + ".mp4"), name)) + "\n";
  }
  std::string sorted_made() const {
    std::vector<std::string> names = made;
    std::sort(names.begin(), names.end());
    std::string all;
    for (const std::string& name : names)
      all += name;
    return all;
  }
};

}  // namespace

TEST_CASE("parts of prompts have the clips of all, whoever makes them, and each prompt's place") {
  for (const bool in_rounds : {false, true})
    for (const int parts : {1, 3}) {
      CAPTURE(in_rounds, parts);
      PretendedJob of(parts::any_part(parts));
      of.in_rounds = in_rounds;
      of.work();
      CHECK(of.sorted_made() == "abcde");
      CHECK(of.rounds == (in_rounds ? parts : 0));
      std::vector<bool> begun(static_cast<std::size_t>(parts), true);
      begun.push_back(false);
      CHECK(of.begun == begun);
      CHECK(of.is_finished);
      CHECK(of.joined() ==
            of.line("a") + of.line("b") + of.line("c") + of.line("d") + of.line("e"));
      const std::string errors = io::read_file(of.folder / "errors.jsonl");
      CHECK(std::count(errors.begin(), errors.end(), '\n') == 1);
      CHECK_THAT(errors, Catch::Contains("it cannot be made"));
      std::size_t outputs = 0;
      for (int part = 0; part < parts; ++part)
        outputs += parts::need_marker(of.folder.path, "generate", part).results.outputs.size();
      CHECK(outputs == 10);  // with the record of each clip
      // Done parts are only printed by who asks for them, and made by nobody.
      CHECK(of.work().empty());
      CHECK(of.made.empty());
    }
}

TEST_CASE("a part is of its prompts and of the model, and other parts stay") {
  PretendedJob of(parts::any_part(3));
  of.work();
  const auto inputs = [&] {
    std::vector<std::string> all;
    for (int part = 0; part < 3; ++part)
      all.push_back(parts::need_marker(of.folder.path, "generate", part).inputs);
    return all;
  };
  const std::vector<std::string> before = inputs();
  const auto changed = [&] {
    of.work();
    int count = 0;
    for (std::size_t part = 0; part < 3; ++part)
      count += inputs()[part] != before[part];
    return count;
  };
  CHECK(changed() == 0);
  of.job.prompts.push_back("f");
  CHECK(changed() == 1);
  of.job.prompts.pop_back();
  CHECK(changed() == 0);
  std::swap(of.job.prompts[0], of.job.prompts[3]);  // The places of both have changed.
  CHECK(changed() >= 1);
  std::swap(of.job.prompts[0], of.job.prompts[3]);
  of.hash = "of another model";
  CHECK(changed() == 3);
  of.hash = "h";
  of.job.quality = 13;
  CHECK(changed() == 3);
  // One part knows its digest alone.
  of.job.quality = 12;
  for (int part = 0; part < 3; ++part) {
    of.job.parts->choice = parts::fixed_part(part, 3);
    of.work();
  }
  CHECK(inputs() == before);
}

TEST_CASE("a part without prompts is of the model, too, whoever does it") {
  PretendedJob of(parts::any_part(3));
  of.job.prompts = {"a"};
  const auto inputs = [&] {
    std::string all;
    for (int part = 0; part < 3; ++part)
      all += parts::need_marker(of.folder.path, "generate", part).inputs + " ";
    return all;
  };
  of.work();
  const std::string before = inputs();
  of.hash = "of another model";
  of.work();
  CHECK(of.joined() == of.line("a"));
  of.hash = "h";
  for (int part = 0; part < 3; ++part) {
    of.job.parts->choice = parts::fixed_part(part, 3);
    of.work();
  }
  CHECK(inputs() == before);
  CHECK(of.joined() == of.line("a"));
}

TEST_CASE("a fault in a round ends the part when all ranks have ended it, and gives it back") {
  PretendedJob of(parts::any_part(1));
  of.in_rounds = true;
  of.bad = "a";
  CHECK_THROWS_WITH(of.work(), Catch::Contains("'path'"));
  CHECK(of.rounds == 1);
  CHECK(of.sorted_made() == "ab");  // the first round
  CHECK(io::read_file(of.folder / "printed").empty());
  CHECK_FALSE(of.is_finished);
  CHECK(of.store.list("generate/00000") == std::vector<std::string>{"failed.json"});
  of.bad.clear();
  of.work();
  CHECK(of.sorted_made() == "abcde");
  CHECK_FALSE(of.store.facts("generate/00000/failed.json"));
}

TEST_CASE("a rank that is not the first makes what the first one deals, part by part") {
  PretendedJob of(parts::any_part(3));
  of.in_rounds = true;
  of.is_first = false;
  CHECK(of.work().empty());
  CHECK(of.rounds == 2);
  CHECK(of.begun == std::vector<bool>{false, false, false});
  CHECK(of.is_finished);
  CHECK(of.store.list("").empty());
}

TEST_CASE("parts without a prompt, or of another number, are refused before any work") {
  PretendedJob of(parts::any_part(3));
  of.job.prompts.clear();
  CHECK_THROWS_WITH(of.work(), Catch::Contains("no prompts are given"));
  of.job.prompts = {"a"};
  of.work();
  of.job.parts->choice = parts::any_part(4);
  CHECK_THROWS_WITH(of.work(), Catch::Contains("3 parts, not 4"));
  CHECK(of.made.empty());
}
