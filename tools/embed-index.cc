// vfm-embed index: makes or updates an index of the vectors of shards.
// SPDX-License-Identifier: Apache-2.0
#include "cli/options.h"
#include "columns/search/index.h"
#include "columns/search/inverted_file.h"
#include "verbs.h"

namespace {

class EmbedIndexTool : public vfm::cli::Tool {
 public:
  std::string name() const override { return "vfm-embed"; }
  std::string description() const override {
    return "Makes or updates an index of vectors, to search millions of samples.";
  }
  std::string examples() const override {
    return "vfm-embed index clips.index clips/*.tar\n"
           "vfm-clip b.mp4 -o friday | vfm-embed | vfm-embed index clips.index -\n"
           "vfm-embed index --vectors text captions.index clips/*.tar";
  }

  void add_options(vfm::cli::Options& options) override {
    options.add("INDEX", index_.path, "FILE", "the index to make or update")
        .required()
        .shown("")
        .check(vfm::cli::not_empty)
        .everyday();
    input_.add_shards(options);
    options.add("--vectors", vectors_, "video|text", "index the vectors of clips or of captions")
        .one_of({"video", "text"})
        .everyday()
        .manual(
            "*video*: index the vectors of clips. *text*: index the vectors that a sentence "
            "encoder made of captions. To add shards, give the same value as before.");
    options.flag("--force", index_.force, "make the index again")
        .everyday()
        .manual(
            "Make the index again, from only the shards of this command, and replace an existing "
            "index.");
    jobs_.add(options);
    member_.add(options);
  }

  void check() override { vfm::columns::need_faiss(); }

  long run(vfm::cli::Context& context) override {
    vfm::share::Slots slots = context.slots(jobs_);
    index_.inputs = input_.resolved();
    index_.kind =
        vectors_ == "text" ? vfm::columns::VectorKind::text : vfm::columns::VectorKind::video;
    index_.limits.member = member_.bytes;
    return vfm::columns::build_index(index_, slots, context.progress, context.manifest);
  }

 private:
  vfm::cli::InputOptions input_;
  vfm::cli::JobOptions jobs_;
  vfm::cli::MemberOptions member_;
  std::string vectors_ = "video";
  vfm::columns::IndexOptions index_;
};

}  // namespace

std::unique_ptr<vfm::cli::Tool> make_embed_index() {
  return std::make_unique<EmbedIndexTool>();
}
