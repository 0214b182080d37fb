// Several folders as one: what must agree, what a blend says of itself, and how it is trained on.
// SPDX-License-Identifier: Apache-2.0
#include "train/data/blend.h"

#include <omp.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <mutex>

#include "base/json.h"
#include "dist/threads.h"
#include "latents_fixture.h"
#include "support/usage_error.h"
#include "train/data/step_reader.h"
#include "train/step/folder_validations.h"
#include "train/step/trainer.h"

using namespace vfm;
using namespace vfm::train;

namespace {

/// A: 12 images and videos of one size; B: 5 of several.
struct TwoFolders {
  TemporaryFolder folder;
  std::string a = folder.path + "/a", b = folder.path + "/b";

  TwoFolders() {
    write_latents(a, {.samples = 12});
    write_latents(b, {.samples = 5, .mixed = true});
  }
  /// Changes a value in the latents.json of one.
  static void set(const std::string& of, const std::string& key, const Json& value) {
    const std::string path = of + "/latents.json";
    Json info = parse_json(io::read_file(path), "info");
    info[key] = value;
    io::write_file(path, dump_json_pretty(info));
  }
  RunOptions options(const std::string& more, const std::vector<std::string>& folders) const {
    RunOptions options;
    options.recipe = tiny_recipe(more);
    options.recipe.data.tokens = 64;
    settle_folders(options, folders);
    return options;
  }
  RunOptions options(const std::string& more) const { return options(more, {a, b}); }
};

}  // namespace

TEST_CASE("a blend has the samples of its folders, one after the other, and one index of them") {
  const TwoFolders two;
  const auto blend = open_data(two.options("data: {weights: [3, 1]}"));
  RunOptions of_a = two.options("", {two.a}), of_b = two.options("", {two.b});
  CHECK(of_a.blend.empty());
  CHECK(of_a.recipe.data.folders.empty());
  const auto a = open_data(of_a), b = open_data(of_b);
  REQUIRE(blend->size() == 17);
  CHECK(a->sources().empty());
  REQUIRE(blend->sources().size() == 2);
  CHECK(blend->sources()[0].name == "a");
  CHECK(blend->sources()[1].name == "b");
  CHECK(blend->sources()[1].share == 0.25);
  std::uint64_t counted = 0;
  for (const data::Form& form : blend->index().forms()) {
    counted += form.count;
    CHECK(blend->sizes(form.first).frames == form.frames);
    CHECK(blend->sizes(form.first).height == form.height);
  }
  CHECK(counted == 17);
  CHECK(blend->index().forms().size() < a->index().forms().size() + b->index().forms().size());
  const std::vector<std::string> keys = blend->index().keys();
  for (std::size_t i = 0; i < 17; ++i) {
    const Dataset& part = i < 12 ? *a : *b;
    const std::size_t own = i < 12 ? i : i - 12;
    CHECK(blend->source_of(i) == (i < 12 ? 0 : 1));
    data::Entry entry = part.entry(own);
    entry.key = (i < 12 ? "a/" : "b/") + entry.key;  // both have samples of the same keys
    CHECK(to_json(blend->entry(i)) == to_json(entry));
    CHECK(keys[i] == entry.key);
    CHECK(blend->read(i).key == entry.key);
    CHECK(blend->sizes(i).shard == part.sizes(own).shard);
    CHECK(blend->about_bytes(i) == part.about_bytes(own));
    CHECK(blend->index().check(i) == part.index().check(own));
    CHECK(blend->read(i).x0 == part.read(own).x0);
    const std::int64_t all = blend->about_bytes(i);
    CHECK(
        blend
            ->put_together(i, blend->read_piece(i, 0, all / 2) + blend->read_piece(i, all / 2, all))
            .text == part.read(own).text);
  }
  CHECK_THROWS_AS(blend->sizes(17), Error);
  CHECK(blend->facts()["trained"]["height"] == 8);
  CHECK(a->facts()["trained"]["height"] == 4);
}

TEST_CASE("a blend is named by its folders, their order and their shares") {
  const TwoFolders two;
  const auto name = [](const RunOptions& options) { return open_data(options)->fingerprint(); };
  const std::string of = name(two.options("data: {weights: [3, 1]}"));
  CHECK(name(two.options("data: {weights: [6, 2]}")) == of);  // the same
  CHECK(name(two.options("data: {weights: [3, 2]}")) != of);
  CHECK(name(two.options("data: {repeats: [3, 1]}")) != of);
  CHECK(name(two.options("data: {weights: [1, 3]}", {two.b, two.a})) != of);
  CHECK(name(two.options("", {two.a})) == open_data(two.options("", {two.a}))->fingerprint());
  // In the recipe: the same.
  CHECK(name(two.options("data: {weights: [3, 1], folders: [" + two.a + ", " + two.b + "]}", {})) ==
        of);
  // Neither weights nor repeats: each once.
  CHECK(name(two.options("")) == name(two.options("data: {repeats: [1, 1]}")));
}

TEST_CASE("folders that do not go together are refused, with all that differs") {
  const TwoFolders two;
  const auto message = [&](const std::string& more, const std::vector<std::string>& folders) {
    return usage_error([&] { open_data(two.options(more, folders)); });
  };
  const auto has = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  CHECK(has(message("", {two.a, two.folder.path + "/./a/"}), "are one folder"));
  CHECK(has(message("", {two.a, two.folder.path + "/c"}), "is not a folder of latents"));
  CHECK(has(message("data: {weights: [1, 2, 3]}", {two.a, two.b}),
            "'data.weights' has 3 numbers, and there are 2 folders"));
  CHECK(has(message("data: {repeats: [2]}", {two.a}), "'data.repeats' is for several folders"));
  CHECK(has(message("data: {weights: [1, 2], repeats: [1, 2]}", {two.a, two.b}), "both set"));
  CHECK(has(usage_error([&] { two.options("data: {weights: [1, 0]}"); }), "above 0"));
  TwoFolders::set(two.b, "tokenizer", {{"name", "x"}, {"hash", "12"}});
  TwoFolders::set(two.b, "text_encoder", {{"name", "y"}, {"dim", 8}});
  const std::string both = message("", {two.a, two.b});
  CHECK(has(both, "tokenizer of '" + two.a + "' is builtin:wavelet, of '" + two.b + "' x (12)"));
  CHECK(has(both, "text_encoder of '" + two.a + "' is builtin:hash, of '" + two.b + "' y"));
  // Wherever it is, it is the same.
  TwoFolders::set(two.b, "text_encoder", {{"name", "builtin:hash"}, {"dim", 8}});
  TwoFolders::set(two.a, "tokenizer", {{"name", "x"}, {"path", "/old"}, {"hash", "12"}});
  TwoFolders::set(two.b, "tokenizer", {{"name", "x"}, {"path", "/new"}, {"hash", "12"}});
  CHECK(open_data(two.options(""))->size() == 17);
  TwoFolders::set(two.b, "mean", std::vector<double>(3, 0));
  TwoFolders::set(two.b, "std", std::vector<double>(3, 1));
  CHECK(has(message("", {two.a, two.b}), "'a' has statistics of 4 channels, that of 'b' of 3"));
  TwoFolders::set(two.b, "mean", std::vector<double>(4, 0));
  TwoFolders::set(two.b, "std", std::vector<double>(4, 1));
  // A sample that does not fit is said with its folder.
  Recipe small = two.options("").recipe;
  small.data.tokens = 16;
  CHECK(has(usage_error([&] { open_data(two.options(""))->fit(small); }), "'b': sample '"));
}

TEST_CASE("latents of a blend are seen in one scale: that of what training sees of all") {
  const TwoFolders two;
  const auto scale_of = [](const Dataset& data) {
    return models::LatentScale::from_json(data.facts()["latent_scale"], "test");
  };
  CHECK(scale_of(*open_data(two.options(""))).mean == std::vector<double>(4, 0));
  CHECK(scale_of(*open_data(two.options(""))).std == std::vector<double>(4, 1));
  TwoFolders::set(two.a, "mean", std::vector<double>(4, 1));
  TwoFolders::set(two.b, "mean", std::vector<double>(4, -2));
  TwoFolders::set(two.b, "std", std::vector<double>(4, 3));
  const RunOptions options = two.options("data: {weights: [3, 1]}");
  const auto blend = open_data(options);
  const auto mean_size = [](const Dataset& data) {
    double sum = 0;
    for (std::size_t i = 0; i < data.size(); ++i)
      sum += data.sizes(i).frames * data.sizes(i).height * data.sizes(i).width;
    return sum / static_cast<double>(data.size());
  };
  const auto a = open_data(two.options("", {two.a})), b = open_data(two.options("", {two.b}));
  const double of_a = 0.75 * mean_size(*a), of_b = 0.25 * mean_size(*b), all = of_a + of_b;
  const double mean = (of_a * 1 + of_b * -2) / all;
  const double square = (of_a * (1 + 1) + of_b * (9 + 4)) / all;
  const models::LatentScale scale = scale_of(*blend);
  CHECK(scale.mean[2] == Approx(mean));
  CHECK(scale.std[2] == Approx(std::sqrt(square - mean * mean)));
  // What is read is in it, also where a folder is opened by itself.
  const float of_one = a->read(0).x0[0];  // (x - 1) / 1 / 2
  const double expected = ((2.0 * of_one + 1) - scale.mean[0]) / scale.std[0] / 2;
  CHECK(blend->read(0).x0[0] == Approx(expected).epsilon(1e-5));
  const RunOptions own = options_of_folder(options, *blend, 0);
  CHECK(open_data(own)->read(0).x0 == blend->read(0).x0);
}

TEST_CASE("ranks train on a blend alike, see each folder's share, and go on from anywhere") {
  const TwoFolders two;
  const RunOptions options = two.options("data: {weights: [2, 1], packs: 4}");
  const auto blend = open_data(options);
  Recipe recipe = options.recipe;
  blend->fit(recipe);
  struct Seen {
    std::vector<double> losses;
    std::vector<RunState> states;
  };
  const auto train = [&](int ranks, const RunState* from) {
    Seen seen;
    std::mutex mutex;
    dist::thread_worlds(ranks, [&](dist::World& world) {
      omp_set_num_threads(1);
      Trainer trainer(recipe, *blend, world);
      if (from != nullptr) trainer.restore(*from);
      for (int i = 0; i < 5; ++i) {
        const StepResult result = trainer.train_step(true);
        const std::lock_guard lock(mutex);
        if (world.rank() > 0) continue;
        seen.losses.push_back(result.loss.mean());
        seen.states.push_back(trainer.state());
      }
    });
    return seen;
  };
  const Seen one = train(1, nullptr), four = train(4, nullptr);
  for (std::size_t i = 0; i < 5; ++i) {
    CHECK(four.losses[i] == Approx(one.losses[i]).epsilon(1e-4));
    CHECK(four.states[i].to_json() == one.states[i].to_json());
    const RunState& state = one.states[i];
    CHECK(state.of_sources[0] + state.of_sources[1] == state.samples);
  }
  // A position of one number of ranks is one of any other; the first step there is the same data.
  const RunState middle =
      RunState::from_json(parse_json(dump_json(four.states[1].to_json()), "x"), "x");
  CHECK(middle.of_sources == four.states[1].of_sources);
  const Seen on = train(2, &middle);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(on.states[i].of_sources == one.states[i + 2].of_sources);
    CHECK(on.states[i].data.pack == one.states[i + 2].data.pack);
    CHECK(on.states[i].tokens == one.states[i + 2].tokens);
  }
  // What was seen at the end of an epoch is its share of it.
  PackOrder order(blend->order(0, data::Packing::blocks), blend->lengths(recipe.model),
                  recipe.data.pack_options());
  std::vector<int> counts(2);
  while (order.position().epoch < 3)
    for (const std::size_t i : order.next())
      if (order.position().epoch < 3) ++counts[blend->source_of(i)];
  CHECK(counts[0] + counts[1] == 3 * 17);
  CHECK(counts[0] == 34);
}

TEST_CASE("a blend is validated folder by folder, and as what training sees of all") {
  const TwoFolders two;
  const RunOptions options = two.options("data: {weights: [3, 1]}");
  const auto blend = open_data(options);
  Recipe recipe = options.recipe;
  blend->fit(recipe);
  const auto world = dist::self_world();
  Trainer trainer(recipe, *blend, *world);
  const auto validate = [&] {
    FolderValidations validations(options, recipe, *blend, false);
    return validations.run(trainer.objective(), trainer.parallel());
  };
  const Json record = validate();
  CHECK(record["val_split"] == "val");
  CHECK(record["val_samples"] == 6);  // three of each
  const double a = record["val_folders"]["a"].get<double>(),
               b = record["val_folders"]["b"].get<double>();
  CHECK(record["val_loss"].get<double>() == Approx(0.75 * a + 0.25 * b));
  CHECK((record["val_sigmas"]["0.3"].get<double>() + record["val_sigmas"]["3"].get<double>()) / 2 ==
        Approx(record["val_loss"].get<double>()));
  const RunOptions alone = two.options("", {two.b});
  const auto of_b = open_data(alone);
  FolderValidations one(alone, recipe, *of_b, false);
  const Json single = one.run(trainer.objective(), trainer.parallel());
  CHECK(single["val_loss"] == b);
  CHECK(!single.contains("val_folders"));
  // Without a split of its own a folder's training samples are taken.
  std::filesystem::remove_all(two.a + "/val");
  CHECK(validate()["val_split"] == "val, train");
  CHECK(validate()["val_folders"]["b"] == b);
}

TEST_CASE("noise is of a sample, and of each time that it comes in a step") {
  // One sample in each folder, of the same key and the same numbers.
  const TemporaryFolder folder;
  const std::vector<std::string> folders = {folder.path + "/a", folder.path + "/b"};
  for (const std::string& one : folders)
    write_latents(one, {.samples = 1});
  const auto world = dist::self_world();
  const auto loss = [&](const std::string& data, const std::vector<std::string>& of) {
    RunOptions options;
    options.recipe = tiny_recipe("data: {tokens: 256, packs: 1, " + data +
                                 "}\ndiffusion: {p_std: 0, text_dropout: 0}\n");
    settle_folders(options, of);
    const auto set = open_data(options);
    Recipe recipe = options.recipe;
    set->fit(recipe);
    Trainer trainer(recipe, *set, *world);
    const double mean = trainer.train_step().loss.mean();
    return std::pair(mean, trainer.state().samples);
  };
  const double alone = loss("window: 8", {folders[0]}).first;
  const auto [once, of_once] = loss("repeats: [1, 1]", folders);
  const auto [often, of_often] = loss("repeats: [4, 4]", folders);
  CHECK(of_once == 2);
  CHECK(of_often == 8);
  CHECK(std::abs(once - alone) > 1e-5);
  CHECK(std::abs(often - once) > 1e-5);
}

TEST_CASE("what comes again in a step is told apart by the order of the step, on any ranks") {
  const TwoFolders two;
  const RunOptions options = two.options("data: {repeats: [1, 9], packs: 6}");
  const auto blend = open_data(options);
  Recipe recipe = options.recipe;
  blend->fit(recipe);
  std::map<std::size_t, std::pair<std::size_t, std::uint32_t>> one;  // by place in the step
  std::mutex mutex;
  for (const int ranks : {1, 2})
    dist::thread_worlds(ranks, [&](dist::World& world) {
      const Parallel parallel(recipe, world);
      StepReader reader(recipe, *blend, parallel);
      reader.seek(0, {}, 1);
      const StepPlan plan = reader.next();
      const std::lock_guard lock(mutex);
      for (const StepPlan::Pack& pack : plan.packs)
        for (std::size_t i = 0; i < pack.samples.size(); ++i) {
          const std::pair found(pack.samples[i], pack.again.at(i));
          CHECK(one.try_emplace(pack.place + i, found).first->second == found);
        }
    });
  std::map<std::size_t, std::uint32_t> counted;
  std::uint32_t most = 0;
  for (const auto& [place, sample] : one) {
    CHECK(sample.second == counted[sample.first]++);
    most = std::max(most, sample.second);
  }
  CHECK(most >= 1);
}

TEST_CASE("who reads a sample is told how often it came in the step before, also by parts") {
  struct Watched final : Dataset {
    explicit Watched(const Dataset& all) : data(all) {}
    const data::SampleIndex& index() const override { return data.index(); }
    const Json& info() const override { return data.info(); }
    bool tells_repeats() const override { return true; }
    std::unique_ptr<data::EpochOrder> order(std::uint64_t seed,
                                            data::Packing packing) const override {
      return data.order(seed, packing);
    }
    void fit_model(Recipe& recipe) const override { data.fit(recipe); }
    CleanSample read_sample(std::size_t i, std::optional<SeenAt> seen) const override {
      const std::lock_guard lock(mutex);
      times[i].push_back(seen.value().again);
      return data.read(i, seen);
    }
    const Dataset& data;
    mutable std::mutex mutex;
    mutable std::map<std::size_t, std::vector<std::uint32_t>> times;
  };
  const TwoFolders two;
  for (const char* layout : {"", "parallel: {tp: 2}\n"}) {
    const RunOptions options =
        two.options("data: {repeats: [1, 9], packs: 6, ahead: 0}\n" + std::string(layout));
    const auto blend = open_data(options);
    Recipe recipe = options.recipe;
    blend->fit(recipe);
    const Watched watched(*blend);
    dist::thread_worlds(2, [&](dist::World& world) {
      const Parallel parallel(recipe, world);
      StepReader reader(recipe, watched, parallel);
      reader.seek(0, {}, 1);
      const StepPlan plan = reader.next();
      if (*layout != '\0') return void(reader.take_own());
      for (const StepPlan::Pack& pack : plan.packs)
        for (std::size_t i = 0; i < pack.samples.size(); ++i)
          reader.take();
    });
    std::size_t most = 0;
    for (auto& [sample, times] : watched.times) {
      std::ranges::sort(times);
      for (std::size_t i = 0; i < times.size(); ++i)
        CHECK(times[i] == i);
      most = std::max(most, times.size());
    }
    CHECK(most > 1);
  }
}

TEST_CASE("a stage on one folder does without the numbers of a run on several") {
  const TwoFolders two;
  const auto settled = [&](const std::string& given, const std::vector<std::string>& folders) {
    RunOptions options;
    options.recipe =
        tiny_recipe("data: {weights: [3, 1], folders: [" + two.a + ", " + two.b + "]}\n");
    options.recipe.given = {given};  // all else is the earlier run's
    if (given == "data.repeats") options.recipe.data.repeats = {2, 1};
    settle_folders(options, folders);
    return options;
  };
  const RunOptions one = settled("", {two.b});
  CHECK(one.recipe.data.weights.empty());
  CHECK(one.data == two.b);
  CHECK(settled("", {two.b, two.a}).recipe.data.weights == std::vector<double>{3, 1});
  CHECK(settled("data.repeats", {}).recipe.data.weights.empty());
  CHECK_THAT(usage_error([&] { settled("data.weights", {two.b}); }),
             Catch::Contains("'data.weights' is for several folders of data"));
}

TEST_CASE("what a run sees of each folder is known beforehand") {
  const TwoFolders two;
  const auto blend = open_data(two.options("data: {weights: [3, 1]}"));
  const Json folders = folders_after(*blend, 80);
  CHECK(folders[0] ==
        Json{{"folder", "a"}, {"share", 0.75}, {"samples", 12}, {"seen", 60.0}, {"epochs", 5.0}});
  CHECK(folders[1]["epochs"] == 4.0);
  CHECK(folders_after(*open_data(two.options("", {two.a})), 80).empty());
}
