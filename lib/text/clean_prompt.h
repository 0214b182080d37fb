// Cleans a prompt as the programs of Wan do before they encode it. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace vfm::text {

/// Returns `utf8` with the characters for references of HTML, "&amp;" and "&#8211;", twice over, as
/// Python's html.unescape() does, with the names of HTML 4 and "apos"; with straight quotes, plain
/// letters for ligatures, usual widths of letters, in NFC, as ftfy's fix_text(); and with single
/// spaces for white space, and none at the ends. What ftfy does beyond that is left out: it also
/// mends UTF-8 that was read as another encoding ("Ã©").
/// Sources: diffusers pipeline_wan.py, prompt_clean(); Python 3.12, html/__init__.py; ftfy 6.3,
/// fixes.py and chardata.py.
std::string clean_prompt(std::string_view utf8);

}  // namespace vfm::text
