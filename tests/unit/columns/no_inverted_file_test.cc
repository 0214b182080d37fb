// What a build without FAISS says: this program has lib/columns/search/no_inverted_file.cc in every
// build.
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "base/error.h"
#include "columns/search/inverted_file.h"

using namespace vfm;

TEST_CASE("without FAISS each use is refused as wrong usage, with what to install") {
  CHECK(columns::faiss_version().empty());
  const auto refused = [](const auto& use) {
    try {
      use();
    } catch (const Error& error) {
      return error.kind() == ErrorKind::usage &&
             std::string(error.what()).find("install libfaiss-dev") != std::string::npos;
    }
    return false;
  };
  share::Slots slots(1);
  std::vector<float> one = {1, 0}, out;
  CHECK(refused(columns::need_faiss));
  CHECK(refused([&] { columns::train_lists(one, 2, 1, slots); }));
  CHECK(refused([&] { columns::InvertedFile(2, one, one); }));
  CHECK(refused([&] { columns::unit_products(one, one, 2, out); }));
}
