// SPDX-License-Identifier: Apache-2.0
#include "columns/search/vector_query.h"

#include <algorithm>

#include "base/error.h"
#include "columns/search/file_query.h"
#include "columns/search/index_search.h"
#include "io/file.h"
#include "io/npy.h"
#include "shard/media_members.h"

namespace vfm::columns {
namespace {

VectorQueries rows_of_file(const std::string& path, const IndexModel& model) {
  const std::string bytes = io::read_file(path);
  const std::string what = "'" + path + "'";
  const auto shape = io::parse_npy(bytes, what).shape;
  if (shape.empty() || shape.size() > 2 || shape.back() != static_cast<std::int64_t>(model.dim) ||
      shape.front() < 1)
    fail_usage("{} holds no vectors of {} numbers, as the index has them", what, model.dim);
  return {model.dim, io::npy_floats(bytes, what), true};
}

std::vector<float> text_vector(const SearchOptions& options, const IndexModel& model) {
  const std::string& query = options.query;
  if (!has_words(query)) fail_usage("the text to search for has no words");
  if (model.kind == VectorKind::video) {
    if (!has_texts(model.encoder))
      fail_usage(
          "the index is of clips by {}, which a text cannot be compared with; search for a "
          "video or a picture, index with --vectors text, or embed with --video of a CLIP",
          get_string(model.encoder, "name").value_or(dump_json(model.encoder)));
    return encode_text_beside_clips(options.query_prompt.value_or("") + query, model.encoder,
                                    "the index");
  }
  return query_encoder(model.encoder, options.query_prompt)->encode(query).values;
}

}  // namespace

bool is_vectors_file(const std::string& query) {
  return query.ends_with(".npy") && io::file_exists(query);
}

VectorQueries vector_queries(const SearchOptions& options, const IndexModel& model) {
  const std::string& query = options.query;
  VectorQueries out{model.dim, {}, false};
  if (is_vectors_file(query)) {
    refuse_prompt_before_file(options);
    out = rows_of_file(query, model);
  } else if (io::file_exists(query) && shard::is_media_name(query)) {
    if (model.kind == VectorKind::text)
      fail_usage("the index is of captions, which '{}' cannot be compared with", query);
    refuse_prompt_before_file(options);
    out.values = FileQuery(query, options.hardware).vector(model.encoder, "the index");
  } else if (query.find(' ') == std::string::npos &&
             (shard::is_media_name(query) || query.ends_with(".npy"))) {
    fail_usage("cannot open '{}': there is no such file", query);
  } else {
    out.values = text_vector(options, model);
  }
  if (out.values.size() % model.dim != 0 || out.values.empty())
    fail("'{}' became {} numbers, the index has vectors of {}", query, out.values.size(),
         model.dim);
  for (std::size_t i = 0; i < out.count(); ++i)
    if (std::vector<float> one = out.one(i); to_unit_length(one))
      std::copy(one.begin(), one.end(),
                out.values.begin() + static_cast<std::ptrdiff_t>(i * model.dim));
    else
      fail("'{}': vector {} is zero, and nothing is near to it", query, i);
  return out;
}

}  // namespace vfm::columns
