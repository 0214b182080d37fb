// Queries as unit vectors by the encoder of what is searched, and queries that cannot be.
// SPDX-License-Identifier: Apache-2.0
#include "columns/search/vector_query.h"

#include <catch2/catch.hpp>

#include "base/error.h"
#include "columns/embed/clip_vector.h"
#include "columns/embed/glimpse.h"
#include "columns/search/file_query.h"
#include "columns/search/index_search.h"
#include "curate/vectors/look.h"
#include "io/npy.h"
#include "models/text_encoder.h"
#include "support/distance.h"
#include "support/temporary_folder.h"
#include "support/usage_error.h"
#include "unit/columns/column_cases.h"

using namespace vfm;
using namespace vfm::columns;

namespace {

VectorQueries queries_of(const std::string& query, const IndexModel& model,
                         const std::optional<std::string>& prompt = {}) {
  SearchOptions options;
  options.query = query;
  options.query_prompt = prompt;
  return vector_queries(options, model);
}

IndexModel index_model(VectorKind kind, const Json& encoder, std::uint64_t dim) {
  IndexModel model;
  model.kind = kind;
  model.encoder = encoder;
  model.dim = dim;
  return model;
}

template <class Act>
std::string query_error(Act act) {
  try {
    act();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

}  // namespace

TEST_CASE("a file of vectors is a query for each of its rows, of length 1") {
  const TemporaryFolder folder;
  const IndexModel model = index_model(VectorKind::video, curate::look_config(), 2);
  const std::string file = folder / "q.npy";
  folder.write("q.npy", io::make_npy_float({2, 2}, std::vector<float>{3, 4, 0, -2}));
  const VectorQueries two = queries_of(file, model);
  CHECK(two.count() == 2);
  CHECK(two.numbered);
  CHECK(two.one(0) == std::vector<float>{0.6f, 0.8f});
  CHECK(two.one(1) == std::vector<float>{0, -1});
  folder.write("q.npy", io::make_npy_half({2}, std::vector<float>{0, 7}));
  CHECK(queries_of(file, model).one(0) == std::vector<float>{0, 1});
  CHECK(queries_of(file, model).count() == 1);
  const std::string no_vectors =
      "'" + file + "' holds no vectors of 2 numbers, as the index has them";
  for (const std::vector<std::int64_t>& shape :
       {std::vector<std::int64_t>{}, {3}, {1, 1, 2}, {2, 1}, {0, 2}}) {
    std::int64_t count = 1;
    for (const std::int64_t size : shape)
      count *= size;
    folder.write("q.npy",
                 io::make_npy_float(shape, std::vector<float>(static_cast<std::size_t>(count), 1)));
    CHECK(usage_error([&] { queries_of(file, model); }) == no_vectors);
  }
  folder.write("q.npy", io::make_npy_float({2, 2}, std::vector<float>{3, 4, 0, 0}));
  CHECK(query_error([&] { queries_of(file, model); }) ==
        "'" + file + "': vector 1 is zero, and nothing is near to it");
  CHECK(usage_error([&] { queries_of(file, model, "of"); }) ==
        "'" + file + "' is a file, and --query-prompt goes before a text");
  CHECK(usage_error([&] { queries_of(folder / "none.npy", model); }) ==
        "cannot open '" + folder.path + "/none.npy': there is no such file");
  CHECK_THAT(usage_error([&] { queries_of("none.mp4", model); }),
             Catch::StartsWith("cannot open 'none.mp4'"));
}

TEST_CASE("a video or picture is a query by the clips' encoder") {
  const TemporaryFolder folder;
  folder.write("q.mp4", make_video(8, kRed));
  const std::string file = folder / "q.mp4";
  const IndexModel look = index_model(VectorKind::video, curate::look_config(), curate::kLookDim);
  const VectorQueries one = queries_of(file, look);
  CHECK(one.count() == 1);
  CHECK_FALSE(one.numbered);
  CHECK(largest_difference(one.values, curate::look(glimpse_of_file(file, nullptr))) < 1e-6);
  const auto encoder =
      models::make_picture_encoder(VFM_GOLDEN "/picture_encoders/clip", Device::cpu, DType::f32);
  const Json config = clip_vector_config(*encoder, 2);
  ClipVectors vectors(*encoder);
  vectors.push(prepare_file(file, *encoder, 2, nullptr).frames);
  const std::vector<float> expected = vectors.take(true).front().vector;
  CHECK(largest_difference(queries_of(file, index_model(VectorKind::video, config, 12)).values,
                           expected) < 1e-6);
  CHECK(query_error([&] { queries_of(file, index_model(VectorKind::video, config, 5)); }) ==
        "'" + file + "' became 12 numbers, the index has vectors of 5");
  CHECK(usage_error([&] { queries_of(file, index_model(VectorKind::text, config, 12)); }) ==
        "the index is of captions, which '" + file + "' cannot be compared with");
  CHECK(usage_error([&] { queries_of(file, look, "of"); }) ==
        "'" + file + "' is a file, and --query-prompt goes before a text");
  // A file by encoders that are none, or not what they were.
  FileQuery query(file, nullptr);
  CHECK(query.vector(Json(), "k") == curate::look(glimpse_of_file(file, nullptr)));
  CHECK(query.vector(config, "k") == expected);
  CHECK(&query.vector(config, "l") == &query.vector(config, "k"));
  const auto refused = [&](const char* name, const Json& value) {
    Json other = config;
    other[name] = value;
    return query_error([&] { query.vector(other, "k"); });
  };
  const std::string by_look = ", not by " + dump_json(curate::look_config());
  for (const Json& count : {Json(0), Json(65), Json()})
    CHECK_THAT(refused("frames", count),
               Catch::StartsWith("k was embedded by {") && Catch::EndsWith(by_look));
  CHECK_THAT(refused("path", nullptr), Catch::EndsWith(by_look));
  CHECK(query_error([&] { query.vector(Json(7), "k"); }) == "k was embedded by 7" + by_look);
  CHECK_THAT(refused("hash", "1a"), Catch::Contains(", which is not what '") &&
                                        Catch::EndsWith("' holds: " + dump_json(config)));
  CHECK(refused("frames", 64).empty());
  CHECK(refused("frames", 1).empty());
}

TEST_CASE("a text is a query by the text part of a clip's encoder, or by captions' own") {
  const TemporaryFolder folder;
  const std::string model = make_clip_model(folder / "clip");
  const auto pictures = models::make_picture_encoder(model, Device::cpu, DType::f32);
  const Json config = clip_vector_config(*pictures, 8);
  const auto texts = models::make_text_encoder(models::text_encoder_config(model, 512, DType::f32));
  std::vector<float> expected = texts->encode("a photo of a red fox").values;
  models::normalise(expected);
  const IndexModel clips = index_model(VectorKind::video, config, 12);
  CHECK(largest_difference(queries_of("a photo of a red fox", clips).values, expected) < 1e-6);
  CHECK(largest_difference(queries_of("a red fox", clips, "a photo of ").values, expected) < 1e-6);
  CHECK(largest_difference(queries_of("a red fox", clips).values, expected) > 1e-3);
  CHECK(usage_error([&] { queries_of(" ,.", clips); }) == "the text to search for has no words");
  CHECK_THAT(usage_error([&] {
               queries_of("a fox", index_model(VectorKind::video, curate::look_config(), 234));
             }),
             Catch::StartsWith("the index is of clips by builtin:look, which a text cannot be "
                               "compared with"));
  CHECK(encode_text_beside_clips("a photo of a red fox", config, "k") == expected);
  Json other = config;
  other["hash"] = "1a";
  CHECK(query_error([&] { encode_text_beside_clips("a fox", other, "k"); }) ==
        "k was embedded by " + dump_json(other) + ", and '" + model + "' holds another model now");
  other = config;
  other["dim"] = 13;
  CHECK(query_error([&] { encode_text_beside_clips("a fox", other, "k"); }) ==
        "k: '" + model + "' makes vectors of texts that cannot be compared with those of clips");
  // Captions by a sentence encoder, with a prompt before the query.
  const std::string bert = VFM_GOLDEN "/sentences/bert";
  const text::EncoderConfig of = models::text_encoder_config(bert, 64, DType::f32);
  const IndexModel captions =
      index_model(VectorKind::text, of.to_json(), static_cast<std::uint64_t>(*of.dim));
  const auto by_prompt = [&](const std::string& prompt) {
    text::EncoderConfig with = of;
    with.prompt = prompt;
    std::vector<float> vector = models::make_text_encoder(with)->encode("a fox").values;
    models::normalise(vector);
    return vector;
  };
  CHECK(largest_difference(queries_of("a fox", captions, "find: ").values, by_prompt("find: ")) <
        1e-6);
  CHECK(largest_difference(queries_of("a fox", captions).values, by_prompt("find: ")) > 1e-3);
  Json with_prompt = of.to_json();
  with_prompt["query_prompt"] = "find: ";
  CHECK(query_encoder(with_prompt, {})->encode("a fox").values ==
        query_encoder(of.to_json(), "find: ")->encode("a fox").values);
  CHECK(query_encoder(with_prompt, "other")->encode("a fox").values !=
        query_encoder(with_prompt, {})->encode("a fox").values);
  const Json hash = {{"name", "builtin:hash"}, {"dim", 64}};
  CHECK(query_encoder(hash, {})->encode("a fox").tokens == 2);
  CHECK(query_error([&] { query_encoder(hash, "find: "); }) ==
        "captions are embedded word by word by builtin:hash: no prompt goes before a text that is "
        "compared with these; leave out --query-prompt");
  CHECK(has_words("a"));
  CHECK_FALSE(has_words(" .,"));
  CHECK(has_texts({{"path", "x"}, {"name", "clip"}}));
  CHECK(has_texts({{"path", "x"}, {"name", "siglip"}}));
  CHECK(has_texts({{"path", "x"}, {"name", "siglip2"}}));
  CHECK_FALSE(has_texts({{"path", "x"}, {"name", "dinov2"}}));
  CHECK_FALSE(has_texts({{"name", "clip"}}));
  CHECK_FALSE(has_texts(Json("clip")));
}
