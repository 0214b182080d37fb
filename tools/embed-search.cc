// vfm-embed search: finds the samples nearest to a text, a video or a picture.
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "cli/options.h"
#include "columns/search/index_search.h"
#include "columns/search/inverted_file.h"
#include "columns/search/search.h"
#include "device_engines.h"
#include "media/isolate/isolated.h"
#include "verbs.h"

namespace {

class EmbedSearchTool : public vfm::cli::Tool {
 public:
  std::string name() const override { return "vfm-embed"; }
  std::string description() const override {
    return "Prints the samples nearest to a text, a video or a picture, the nearest first.";
  }
  std::string examples() const override {
    return "vfm-embed search 'a red circle' clips/*.tar\n"
           "vfm-embed search a.mp4 --top 1 clips/*.tar\n"
           "vfm-embed search 'a red fox' --index clips.index";
  }

  void add_options(vfm::cli::Options& options) override {
    options
        .add("QUERY", search_.query, "TEXT",
             "a text, or the file of a video, a picture or vectors (.npy)")
        .required()
        .shown("")
        .everyday();
    input_.add_shards(options);
    options.add("--top", search_.top, "N", "print the N nearest samples")
        .in(1, 1'000'000'000)
        .everyday()
        .manual("Print the _N_ nearest samples.");
    vfm::cli::OptionRow& index = options.add("--index", search_.index, "FILE",
                                             "search an index of vfm-embed index, not shards");
    index.shown("")
        .check(vfm::cli::not_empty)
        .everyday()
        .manual("Search the samples of this index in place of shards. See *vfm-embed-index*(1).");
    options
        .flag("--exact", search_.exact,
              "compare the query with all vectors in the index's "
              "shards")
        .needs(index)
        .everyday()
        .manual(
            "Compare the query with the vectors of all samples of the index. The vectors are read "
            "from the shards.");
    add_text_option(options, "--query-prompt", search_.query_prompt,
                    "put TEXT before a query that is a text")
        .manual(
            "Put _TEXT_ before a query that is a text. A space at the end of _TEXT_ is kept. "
            "Default: the prompt in the shards.");
    options.group("Work");
    jobs_.add(options);
    member_.add(options);
    hwaccel_.add(options);
    input_limits_.add(options);
    input_limits_.add_isolation(options);
  }

  void check() override {
    input_limits_.check_isolation(hwaccel_);
    const bool index = !search_.index.empty();
    if (search_.query.empty()) vfm::fail_usage("the text to search for has no words");
    if (index) vfm::columns::need_faiss();
    if (index && !input_.inputs.empty())
      vfm::fail_usage("--index names what is searched; leave out the shards");
    if (!index && vfm::columns::is_vectors_file(search_.query))
      vfm::fail_usage("vectors of a file are searched for in an index; name it by --index");
  }

  int fork_helper() override { return vfm::media::fork_isolation(input_limits_.limits.isolate); }
  int serve_isolated(int channel) override { return vfm::media::serve_isolated(channel); }

  long run(vfm::cli::Context& context) override {
    input_limits_.apply();
    vfm::media::begin_isolation();
    search_.hardware = engines_.decoder(hwaccel_);
    search_.limits.member = member_.bytes;
    vfm::share::Slots slots = context.slots(jobs_);
    if (!search_.index.empty())
      return vfm::columns::search_index(search_, slots, context.progress, context.manifest);
    search_.inputs = input_.resolved();
    return vfm::columns::search(search_, slots, context.progress, context.manifest);
  }

 private:
  vfm::cli::InputOptions input_;
  vfm::cli::JobOptions jobs_;
  vfm::cli::MemberOptions member_;
  vfm::cli::HwaccelOptions hwaccel_;
  vfm::cli::InputLimitOptions input_limits_;
  vfm::cli::WorkerOptions device_;  // unset, as there is no --device
  vfm::cli::DeviceEngines engines_{device_, jobs_, "vfm-embed"};
  vfm::columns::SearchOptions search_;
};

}  // namespace

std::unique_ptr<vfm::cli::Tool> make_embed_search() {
  return std::make_unique<EmbedSearchTool>();
}
