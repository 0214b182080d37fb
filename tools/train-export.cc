// vfm-train export: a trained model for diffusers and peft.
// SPDX-License-Identifier: Apache-2.0

#include "base/error.h"
#include "base/json.h"
#include "cli/options.h"
#include "io/folder.h"
#include "io/manifest.h"
#include "train/checkpoint/export.h"
#include "verbs.h"

namespace {

class TrainExportTool : public vfm::cli::Tool {
 public:
  std::string name() const override { return "vfm-train"; }
  std::string description() const override { return "Writes a model for diffusers and peft."; }
  std::string examples() const override {
    return "vfm-train export run -o tuned\n"
           "vfm-train export run/checkpoints/step-00002000 -o tuned --no-ema\n"
           "vfm-train export adapters -o lora --no-merge";
  }

  void add_options(vfm::cli::Options& options) override {
    options.add("RUN", export_.run, "RUN", "a run of vfm-train, or one of its checkpoints")
        .required()
        .shown("")
        .check(vfm::cli::not_empty)
        .everyday();
    options.group("Output");
    options.add("-o,--output", export_.folder, "DIR", "write the model here")
        .required()
        .shown("")
        .check(vfm::cli::not_empty)
        .check(vfm::cli::not_file)
        .everyday()
        .manual("The folder to write. The folder is complete or does not exist.");
    options.flag("--force", export_.force, "replace an export of something else")
        .everyday()
        .manual("Replace an export of another model. A folder with other files is always refused.");
    options.flag("--no-ema", last_step_, "write the weights of the last step, not averaged")
        .everyday()
        .manual(
            "Write the weights of the last step. Default: averaged weights, if the run has them.");
    options.flag("--no-merge", separate_, "write only adapters, not merged into the weights")
        .everyday()
        .manual(
            "Write only the adapters of a run, not merged into the weights: "
            "_pytorch_lora_weights.safetensors_ for _load_lora_weights_ of diffusers, and "
            "_adapter_model.safetensors_ with _adapter_config.json_ for "
            "_PeftModel.from_pretrained_.");
    options
        .add("--parts", parts_, "link|copy|none",
             "text encoder of a pipeline: link it, copy it, or write no pipeline")
        .one_of({"link", "copy", "none"})
        .everyday()
        .manual(
            "*link* links the files of the text encoder and its tokenizer, which may be large. "
            "*copy* copies these files. *none* writes only the network, without a pipeline.");
    options.group("Parts that have moved");
    add_moved(options, "--tokenizer", export_.tokenizer,
              "find the tokenizer of latents in this "
              "folder");
    add_moved(options, "--text-encoder", export_.text_encoder,
              "find the text encoder in this "
              "folder");
    add_moved(options, "--base", export_.under, "find the model under adapters in this folder");
  }

  void check() override {
    if (!vfm::io::is_folder(export_.run))
      vfm::fail_usage("'{}' is not a folder; give a run of vfm-train, or one of its checkpoints",
                      export_.run);
    using Parts = vfm::train::ExportOptions::Parts;
    export_.average = !last_step_;
    export_.merge = !separate_;
    export_.parts = parts_ == "link" ? Parts::link : parts_ == "copy" ? Parts::copy : Parts::none;
  }

  bool ranks_are_one() const override { return true; }
  bool writes_manifest(const vfm::cli::Launch& launch) const override { return launch.rank == 0; }

  long run(vfm::cli::Context& context) override {
    if (context.launch.rank == 0) context.manifest.write(vfm::train::export_model(export_));
    return 0;
  }

 private:
  static void add_moved(vfm::cli::Options& options, const char* name, std::string& folder,
                        const char* help) {
    options.add(name, folder, "DIR", help)
        .shown("")
        .check(vfm::cli::not_empty)
        .manual(std::string("F") + (help + 1) + ", if it has moved. A different part is refused.");
  }

  bool last_step_ = false, separate_ = false;
  std::string parts_ = "link";
  vfm::train::ExportOptions export_;
};

}  // namespace

std::unique_ptr<vfm::cli::Tool> make_train_export() {
  return std::make_unique<TrainExportTool>();
}
