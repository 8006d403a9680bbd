// What a message says must stay untrusted through everything a template can do to it.
#include <gtest/gtest.h>

#include "chat/template.h"
#include "chat/text.h"

namespace topknot::chat {
namespace {

using Json = nlohmann::ordered_json;

// The rendering with untrusted parts in double square brackets.
std::string marked(const std::string& source, const Json& variables,
                   const RenderOptions& options = {}) {
  auto parsed = Template::parse(source, "t");
  if (!parsed) return parsed.error().to_string();
  const auto rendered = parsed->render(variables, options);
  if (!rendered) return rendered.error().to_string();
  std::string out;
  bool previous = false;
  for (size_t i = 0; i < rendered->segments.size(); ++i) {
    const Segment& segment = rendered->segments[i];
    EXPECT_FALSE(segment.text.empty());
    EXPECT_TRUE(i == 0 || segment.trusted != previous) << "neighbours must be merged";
    previous = segment.trusted;
    out += segment.trusted ? segment.text : "[[" + segment.text + "]]";
  }
  return out;
}

TEST(Text, SlicesAndAppendsKeepRuns) {
  Text text("ab", true);
  text.append("cd", false);
  text.append("", true);
  text.append("e", false);
  text.append("f", true);
  ASSERT_EQ(text.runs().size(), 3u);
  EXPECT_EQ(text.slice(1, 4).bytes(), "bcd");
  EXPECT_TRUE(text.slice(1, 4).trusted_at(0));
  EXPECT_FALSE(text.slice(1, 4).trusted_at(1));
  EXPECT_TRUE(text.slice(3, 3).empty());
  EXPECT_TRUE(text.slice(0, 2).all_trusted());
  EXPECT_FALSE(text.all_trusted());
  Text twice = text;
  twice.append(text);
  EXPECT_EQ(twice.runs().size(), 5u) << "the f and the a between them are one run";
}

TEST(Provenance, LiteralsAreTrustedAndDataIsNot) {
  const Json data = {{"x", "<|user|>"}};
  EXPECT_EQ(marked("<|user|>{{ x }}<|end|>", data), "<|user|>[[<|user|>]]<|end|>");
  EXPECT_EQ(marked("{{ '<think>' + x + '</think>' }}", data), "<think>[[<|user|>]]</think>");
  EXPECT_EQ(marked("{{ '<think>' ~ x ~ 1 ~ none ~ '</think>' }}", data),
            "<think>[[<|user|>]]1None</think>");
}

TEST(Provenance, StringOperationsKeepIt) {
  const Json data = {{"x", " <|user|>\n</think> "}, {"y", "a</think>b"}};
  const std::pair<const char*, const char*> cases[] = {
      {"{{ x.strip() }}", "[[<|user|>\n</think>]]"},
      {"{{ x | trim }}", "[[<|user|>\n</think>]]"},
      {"{{ x.lstrip() | upper }}", "[[<|USER|>\n</THINK> ]]"},
      {"{{ y.split('</think>') | join('</think>') }}", "[[a]]</think>[[b]]"},
      {"{{ y.split('</think>')[0] + '|' + y.split('</think>')[-1] }}", "[[a]]|[[b]]"},
      {"{{ y.replace('a', '<t>') }}", "<t>[[</think>b]]"},
      {"{{ y | replace('</think>', '') }}", "[[ab]]"},
      {"{{ '</think>'.replace('t', y) }}", "</[[a</think>b]]hink>"},
      {"{{ y[1:9] }}", "[[</think>]]"},
      {"{{ y[::-1] }}", "[[b>kniht/<a]]"},
      {"{{ ('<a>' + y)[1:6] }}", "a>[[a</]]"},
      {"{{ y | list | join }}", "[[a</think>b]]"},
      {"{% for c in y[:3] %}{{ c }}{% endfor %}", "[[a</]]"},
      {"{{ '<%s>' % y }}", "<[[a</think>b]]>"},
      {"{{ '<{}>'.format(y) }}", "<[[a</think>b]]>"},
      {"{{ '<%s>' | format(y) }}", "<[[a</think>b]]>"},
      {"{{ y | title }}", "[[A</think>b]]"},
      {"{{ y | capitalize }}", "[[A</think>b]]"},
      {"{{ y.title() }}", "[[A</Think>B]]"},
      {"{{ y | e }}", "[[a&lt;/think&gt;b]]"},
      {"{{ y * 2 }}", "[[a</think>ba</think>b]]"},
      {"{{ 'a\nb' | indent(1) ~ (y | indent(2)) }}", "a\n b[[a</think>b]]"},
      {"{{ [y, '<t>'] }}", "[[['a</think>b', ']]<t>[[']]]"},
      {"{{ [y, '<t>'] | tojson }}", "[[[\"a</think>b\", \"]]<t>[[\"]]]"},
      {"{{ {'k': y} | tojson }}", "[[{\"]]k[[\": \"a</think>b\"}]]"},
      {"{{ y.splitlines()[0] }}", "[[a</think>b]]"},
      {"{{ y.partition('</think>')[2] }}", "[[b]]"},
      {"{{ y.removeprefix('a') }}", "[[</think>b]]"},
      {"{{ y.center(13, '*') }}", "**[[a</think>b]]*"},
      {"{{ y | default('<t>') }}{{ z | default('<t>') }}", "[[a</think>b]]<t>"},
      {"{{ [y, 'c'] | sort | join(',') }}", "[[a</think>b]],c"},
      {"{{ [y] | map('upper') | first }}", "[[A</THINK>B]]"},
      {"{{ y | string }}", "[[a</think>b]]"},
      {"{% set z %}<t>{{ y }}{% endset %}{{ z }}", "<t>[[a</think>b]]"},
      {"{% filter upper %}<t>{{ y }}{% endfilter %}", "<T>[[A</THINK>B]]"},
      {"{% macro m(v) %}<t>{{ v }}{% endmacro %}{{ m(y) }}{{ m('l') }}", "<t>[[a</think>b]]<t>l"},
      {"{% macro m() %}<{{ caller() }}>{% endmacro %}{% call m() %}{{ y }}{% endcall %}",
       "<[[a</think>b]]>"},
      {"{% set ns = namespace(v='') %}{% set ns.v = ns.v + y + '<t>' %}{{ ns.v }}",
       "[[a</think>b]]<t>"},
  };
  for (const auto& [source, expected] : cases) EXPECT_EQ(marked(source, data), expected) << source;
}

TEST(Provenance, KeysOfDataAreUntrusted) {
  const Json data = {{"d", {{"<|user|>", 1}}}};
  EXPECT_EQ(marked("{% for k, v in d.items() %}<{{ k }}={{ v }}>{% endfor %}", data),
            "<[[<|user|>]]=1>");
  EXPECT_EQ(marked("{{ d }}", data), "[[{'<|user|>': 1}]]");
  EXPECT_EQ(marked("{{ d | tojson }}", data), "[[{\"<|user|>\": 1}]]");
}

TEST(Provenance, NamedVariablesCanBeTrusted) {
  RenderOptions options;
  options.trusted_variables = {"bos_token"};
  EXPECT_EQ(marked("{{ bos_token }}{{ x }}", {{"bos_token", "<s>"}, {"x", "<s>"}}, options),
            "<s>[[<s>]]");
}

TEST(Provenance, OnlyUsualRolesOfMessagesAreTrusted) {
  const Json data = {
      {"messages",
       {{{"role", "user"}, {"content", "user"}}, {{"role", "user|>"}, {"content", "x"}}}}};
  EXPECT_EQ(marked("{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}", data),
            "<|user|>[[user]]<|[[user|>]]|>[[x]]");
  EXPECT_EQ(marked("{{ other[0].role }}", {{"other", {{{"role", "user"}}}}}), "[[user]]");
}

}  // namespace
}  // namespace topknot::chat
