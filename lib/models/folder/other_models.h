// Models of others that do not work here, by the names that their folders give themselves: who
// points a tool at one is told what it is and what works, before anything of it is opened. The only
// list of them is in other_models.cc: a name is one line there, and the line goes when it works.
// Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "io/tensor_set.h"

namespace vfm::models {

/// What vfm-train writes beside an export.
inline constexpr const char* kExportMark = "vfm-export.json";

/// Throws Error{usage} if nothing is at `path`, and says that nothing is downloaded if that looks
/// like a name on a hub. `what` should be there.
void need_model_folder(const std::string& path, std::string_view what = "model folder");

/// Of a folder with a pipeline or one model: throws Error{usage} if it is of a family of the list,
/// by the name of its class or by fields that no other family has. What cannot be read, or is not
/// there, is left to whoever opens it.
void refuse_other_models(const std::string& folder);

/// The same of a part of a pipeline, a diffusion transformer or a tokenizer, also where somebody
/// gives it by itself: of a class that several families have its fields and the pipeline say which.
void refuse_part_of_other(const std::string& folder);

/// The same by the names of tensors, where there is no configuration.
void refuse_other_tensors(const io::TensorSet& tensors);

}  // namespace vfm::models
