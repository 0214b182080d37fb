// What diffusers' prompt_clean() makes of the same texts, with Python's html and ftfy.
// SPDX-License-Identifier: Apache-2.0
#include "text/clean_prompt.h"

#include <catch2/catch.hpp>
#include <string>

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
  CHECK(clean_prompt("&amp;amp;amp;amp; &amp;amp;ldquo;x") == "& \"x");
  CHECK(clean_prompt("&#38;#38;#8220; &ampamp; &#59;&#x3b;") == "\" & ;;");
}

TEST_CASE("a text with < is HTML, whose references become characters after all others", "[text]") {
  CHECK(clean_prompt("<b>&ldquo;x&rdquo;</b> &#146; “y”") == "<b>“x”</b> ’ \"y\"");
  CHECK(clean_prompt("<&amp;amp;amp;lt;") == "<&amp;lt;");
  // From its line on.
  CHECK(clean_prompt("&ldquo;x\n<i>\n&ldquo;y") == "\"x <i> “y");
  CHECK(clean_prompt("&lt;i>&ldquo;x") == "<i>\"x");
}

TEST_CASE("control characters, terminal escapes and marks of order of bytes are removed",
          "[text]") {
  CHECK(clean_prompt("\x1b[36;44mblue\x1b[0m \x1b]0;x\x07") == "blue ]0;x");
  CHECK(clean_prompt("a\x1b[１；２ｍb") == "ab");
  CHECK(clean_prompt(std::string("a\0b\vc\x1f"
                                 "d\x7f"
                                 "e\ff",
                                 11)) == "abcde f");
  CHECK(clean_prompt("\uFEFFa\u206Ab\uFFFCc\u2028d") == "abc d");
  // What Windows has from 0x80 on, though Unicode has control characters there.
  CHECK(clean_prompt("x\u0093y\u0094 \u0080\u0085\u0081") == "x\"y\" €…\u0081");
  CHECK(clean_prompt("ﬅ ﬆ") == "ſt st");
}
