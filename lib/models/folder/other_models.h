// Models from elsewhere that are not supported, recognised by the names in their folders. A user
// who gives one gets a message that says what it is and what is supported, before anything is
// opened. other_models.cc lists them, one line per name. Models that have the class of a supported
// architecture are in that architecture's ForeignNetwork (models/dit/foreign.h). A class that an
// architecture lists (models/dit/architecture.h) is supported in spite of the list.
// Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "io/tensor_set.h"

namespace vfm::models {

/// File that vfm-train writes beside an export.
inline constexpr const char* kExportMark = "vfm-export.json";

/// Throws Error{usage} if nothing is at `path`. If the path looks like a name on a hub, the message
/// says that nothing is downloaded. `what` names what should be there.
void need_model_folder(const std::string& path, std::string_view what = "model folder");

/// For a folder with a pipeline or one model: throws Error{usage} if it belongs to a family in the
/// list, by its class name or by fields that only this family has. Ignores files that are missing
/// or cannot be read; a later reader reports them.
void refuse_other_models(const std::string& folder);

/// The same for a part of a pipeline, a diffusion transformer or a tokenizer, also if it is given
/// by itself. If several families share its class, its fields and the pipeline decide.
void refuse_part_of_other(const std::string& folder);

/// The same by the names of tensors, for a folder without a configuration.
void refuse_other_tensors(const io::TensorSet& tensors);

}  // namespace vfm::models
