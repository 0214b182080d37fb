// Cleans a prompt as the programs of Wan do before they encode it. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace vfm::text {

/// Returns `utf8` as prompt_clean() of diffusers' Wan makes it, in its order. First as ftfy's
/// fix_text(): references of HTML, "&amp;" and "&#8211;", become characters, again and again, but
/// not from a line with "<" on; quotes become straight, ligatures plain letters, and letters of
/// usual width; control characters and escapes of terminals are removed; all in NFC. Then as
/// Python's html.unescape(), twice, which also takes "&copy" without a semicolon. At last white
/// space becomes single spaces, with none at the ends. Left out: the names of characters that HTML
/// 5 has beyond those of HTML 4 and "apos", and names in wrong capitals ("&NTILDE;"); and that ftfy
/// mends UTF-8 that was read as another encoding ("Ã©").
/// Sources: diffusers pipeline_wan.py, prompt_clean(); Python 3.12, html/__init__.py; ftfy 6.3,
/// __init__.py, fixes.py and chardata.py.
std::string clean_prompt(std::string_view utf8);

}  // namespace vfm::text
