// What diffusers' prompt_clean() makes of the same texts, with Python's html and ftfy.
// SPDX-License-Identifier: Apache-2.0
#include "text/clean_prompt.h"

#include <catch2/catch.hpp>

using vfm::text::clean_prompt;

TEST_CASE("a prompt is cleaned as Wan's programs do", "[text]") {
  CHECK(clean_prompt(" a red fox &amp;amp; its  cubs\n") == "a red fox & its cubs");
  CHECK(clean_prompt("a\xe3\x80\x80"
                     "b\xc2\xa0"
                     "c\td") == "a b c d");
  CHECK(clean_prompt("") == "");
  CHECK(clean_prompt(" \n ") == "");
  CHECK(clean_prompt("&nbsp;x&nbsp;") == "x");
  CHECK(clean_prompt("&lt;b&gt; &quot;x&quot; &#39;y&#39; &apos;") == "<b> \"x\" 'y' '");
  CHECK(clean_prompt("“curly” ‘quotes’ it’s") == "\"curly\" 'quotes' it's");
  CHECK(clean_prompt("ﬁne ﬀ Ｗｉｄｅ，full ﾊﾝｶｸ") == "fine ff Wide,full ハンカク");
  CHECK(clean_prompt("ŉ Ǆ ĳ") == "'n DŽ ij");
  CHECK(clean_prompt("cafe\xcc\x81") == "caf\xc3\xa9");
  CHECK(clean_prompt("镜头晃动，色调艳丽") == "镜头晃动,色调艳丽");
}

TEST_CASE("references of HTML are read as Python reads them", "[text]") {
  CHECK(clean_prompt("&mdash;&#8211;&#x2014;&#150;") == "—–—–");
  CHECK(clean_prompt("&Alpha;&beta;&hearts;&#128512;") == "Αβ♥😀");
  // Old names need no semicolon, and end where the name does.
  CHECK(clean_prompt("&notit; &copy 2020 &AMP") == "¬it; © 2020 &");
  CHECK(clean_prompt("&foo; & &; &#; &#x; &&amp;amp;") == "&foo; & &; &#; &#x; &&");
  CHECK(clean_prompt("&#0;&#xD800;&#1114112;&#5;") == "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
  // html.unescape() twice; ftfy alone would go on.
  CHECK(clean_prompt("&amp;amp;amp;amp;") == "&amp;amp;");
}
