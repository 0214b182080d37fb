// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "columns/search/inverted_file.h"

namespace vfm::columns {
namespace {

[[noreturn]] void no_faiss() {
  fail_usage(
      "this build has no FAISS, so there is no --index; install libfaiss-dev and "
      "liblapack-dev and build with -Dfaiss=enabled");
}

}  // namespace

struct InvertedFile::Parts {};

std::string faiss_version() {
  return {};
}

void need_faiss() {
  no_faiss();
}

TrainedLists train_lists(std::span<const float>, std::size_t, std::size_t, share::Slots&) {
  no_faiss();
}

InvertedFile::InvertedFile(std::size_t, std::span<const float>, std::span<const float>) {
  no_faiss();
}

InvertedFile::~InvertedFile() = default;

void InvertedFile::code(const float*, std::size_t, std::uint32_t*, std::uint8_t*) const {
  no_faiss();
}

std::vector<std::uint32_t> InvertedFile::search(std::span<const float>, const Search&) const {
  no_faiss();
}

void unit_products(std::span<const float>, std::span<const float>, std::size_t,
                   std::vector<float>&) {
  no_faiss();
}

}  // namespace vfm::columns
