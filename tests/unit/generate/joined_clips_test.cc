// Parts of vfm-generate that are joined: the order of the prompts, and what is refused.
// SPDX-License-Identifier: Apache-2.0
#include "generate/files/joined_clips.h"

#include <fcntl.h>

#include <catch2/catch.hpp>

#include "base/error.h"
#include "base/json.h"
#include "io/file.h"
#include "io/store.h"
#include "parts/part_run.h"
#include "support/parts.h"
#include "support/temporary_folder.h"

using namespace vfm;
using namespace vfm::generate;

namespace {

/// A folder whose parts the test writes by hand, of latents, which no page shows.
struct JoinedParts {
  TemporaryFolder folder;
  io::FileStore store{folder / "parts"};

  explicit JoinedParts(int parts) {
    store.write("generate/run.json", dump_json({{"version", 1}, {"parts", parts}}));
  }
  /// A part with these prompts, which made files of these names.
  void part(int number, const std::vector<std::pair<int, std::string>>& made,
            const std::string& settings = "s") {
    const std::string name = "generate/" + parts::part_name(number) + "/";
    std::string manifest, places;
    for (const auto& [place, file] : made) {
      manifest += dump_json({{"kind", "latent"}, {"path", file}, {"place", place}}) + "\n";
      places += std::to_string(place) + "\n";
    }
    store.write(name + "manifest.jsonl", manifest);
    store.write(name + kPlaces, places);
    parts::PartMarker marker{"vfm-generate", number, 9, "inputs"};
    marker.results.versions = {{kSettings, settings}};
    store.remove(name + "done.json");
    parts::create_marker(store, name + "done.json", marker);
  }
  std::string join() const {
    const std::string path = folder / "joined";
    const io::File file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644), path);
    io::ManifestWriter manifest(file.fd());
    try {
      join_generated(folder.path, manifest);
    } catch (const Error& error) {
      return replaced(error.what(), folder.path, "DIR");
    }
    return replaced(io::read_file(path), folder.path, "DIR");
  }
};

std::string latent_line(int place, const std::string& file) {
  return dump_json({{"kind", "latent"}, {"path", "DIR/" + file}, {"place", place}}) + "\n";
}

}  // namespace

TEST_CASE("records of parts of vfm-generate come in the order of the prompts") {
  JoinedParts of(3);
  of.part(0, {{1, "b"}, {300, "e"}});
  of.part(1, {});
  CHECK(of.join() ==
        "of vfm-generate, 1 of the 3 parts of 'DIR' is not complete: 2; nothing is joined");
  of.part(2, {{0, "a"}, {2, "c"}, {255, "d"}, {70'000, "f"}});
  CHECK(of.join() == latent_line(0, "a") + latent_line(1, "b") + latent_line(2, "c") +
                         latent_line(255, "d") + latent_line(300, "e") + latent_line(70'000, "f"));
  CHECK_FALSE(io::file_exists(of.folder / "contact-sheet.png"));
  CHECK_FALSE(io::file_exists(of.folder / "errors.jsonl"));
  of.store.write("generate/00001/errors.jsonl", "{\"input\":\"z\"}\n{\"input\":\"a\"}\n");
  of.store.write("generate/00002/errors.jsonl", "{\"input\":\"a\"}\n");
  of.join();
  CHECK(io::read_file(of.folder / "errors.jsonl") == "{\"input\":\"a\"}\n{\"input\":\"z\"}\n");
}

TEST_CASE("parts of vfm-generate that do not belong together are not joined") {
  JoinedParts of(3);
  of.part(0, {{0, "a"}});
  of.part(1, {{1, "b"}});
  of.part(2, {{2, "c"}}, "other");
  CHECK(of.join() == "part 2 of 'DIR' has another model or other options than part 0; do it again");
  of.part(2, {{1, "c"}});
  CHECK(of.join() ==
        "two parts have prompt 2, as they were given other prompts; do the parts again");
  of.part(2, {{2, "b"}});
  CHECK(of.join() ==
        "two parts made 'DIR/b'; give one of the prompts another name, and do the parts again");
  of.part(2, {{2, "c"}});
  const std::string good = of.join();
  const auto with = [&](const std::string& places) {
    of.store.write("generate/00002/places.jsonl", places);
    return of.join();
  };
  const auto refusal = [](const std::string& why) {
    return "'DIR/parts/generate/00002/places.jsonl' is not as its part wrote it (" + why +
           "); remove 'DIR/parts/generate/00002/done.json', and do this part again";
  };
  CHECK(with("") == refusal("it ends too early"));
  CHECK(with("x\n") == refusal("'x' is not a number"));
  CHECK(with("2x\n") == refusal("'2x' is not a number"));
  of.store.remove("generate/00002/places.jsonl");
  CHECK(of.join().find("places.jsonl' is not as its part wrote it") != std::string::npos);
  CHECK(with("2\n") == good);
}
