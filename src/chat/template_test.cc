#include "chat/template.h"

#include <gtest/gtest.h>

namespace topknot::chat {
namespace {

using Json = nlohmann::ordered_json;

Result<Rendered> render(const std::string& source, const Json& variables = Json::object()) {
  auto parsed = Template::parse(source, "test.jinja");
  if (!parsed) return std::move(parsed).error();
  return parsed->render(variables);
}

std::string text_of(const std::string& source, const Json& variables = Json::object()) {
  auto rendered = render(source, variables);
  return rendered ? rendered->text() : rendered.error().to_string();
}

Error error_of(const std::string& source, const Json& variables = Json::object()) {
  auto rendered = render(source, variables);
  EXPECT_FALSE(rendered.has_value())
      << source << " rendered " << (rendered ? rendered->text() : "");
  return rendered ? Error{} : rendered.error();
}

TEST(Template, UnsupportedConstructsAreRefusedWhenParsedByNameAndPlace) {
  const std::pair<const char*, const char*> cases[] = {
      {"{% include 'x' %}", "include"},
      {"{% extends 'x' %}", "extends"},
      {"{% import 'x' as y %}", "import"},
      {"{% from 'x' import y %}", "from"},
      {"{% block a %}{% endblock %}", "block"},
      {"{% autoescape true %}{% endautoescape %}", "autoescape"},
      {"{% do x %}", "do"},
      {"{% for x in y recursive %}{% endfor %}", "recursive"},
      {"{{ x | groupby('a') }}", "groupby"},
      {"{{ x | random }}", "random"},
      {"{{ x | pprint }}", "pprint"},
      {"{{ x | slice(2) }}", "slice"},
      {"{{ x is nosuch }}", "nosuch"},
      {"{{ self.x() }}", "self"},
      {"{{ x[1:2, 3] }}", "slice"},
      {"{{ '\\N{DIGIT ONE}' }}", "\\N"}};
  for (const auto& [source, name] : cases) {
    const auto parsed = Template::parse(cat("one\n  ", source), "test.jinja");
    ASSERT_FALSE(parsed.has_value()) << source;
    EXPECT_EQ(parsed.error().code, Code::kUnsupported) << source;
    EXPECT_NE(parsed.error().why.find(name), std::string::npos) << parsed.error().why;
    EXPECT_NE(parsed.error().where.find("test.jinja, line 2, column "), std::string::npos)
        << parsed.error().where;
  }
}

TEST(Template, SyntaxErrorsNameTheirPlace) {
  const auto where = [](const std::string& source) { return error_of(source).where; };
  EXPECT_EQ(where("{{ 1 + }}"), "test.jinja, line 1, column 8");
  EXPECT_EQ(where("a\n\n {% if x %}"), "test.jinja, line 3, column 12");
  EXPECT_EQ(where("a\r\nb {{ x ? y }}"), "test.jinja, line 2, column 8");
  EXPECT_EQ(error_of("{% endif %}").code, Code::kCorrupt);
  EXPECT_EQ(error_of("\xFF").code, Code::kCorrupt);
}

TEST(Template, RuntimeErrorsNameTheirPlaceAndReason) {
  const Error error = error_of("x\n{{ a.b.c }}", {{"a", Json::object()}});
  EXPECT_EQ(error.code, Code::kInvalidArgument);
  EXPECT_EQ(error.where, "test.jinja, line 2, column 7");
  EXPECT_EQ(error.why, "a dict has no attribute 'b'");
  EXPECT_EQ(error_of("{{ f() }}").why, "'f' is undefined");
}

TEST(Template, RaiseExceptionBecomesTheErrorsText) {
  const Error error = error_of("{{ raise_exception('no berth for ' ~ r) }}", {{"r", "tool"}});
  EXPECT_EQ(error.code, Code::kInvalidArgument);
  EXPECT_EQ(error.what, "no berth for tool");
}

TEST(Template, UnsupportedMethodsAreNamedWhenCalled) {
  EXPECT_EQ(error_of("{{ 'a'.encode() }}").code, Code::kUnsupported);
  EXPECT_EQ(error_of("{{ (1).real }}").code, Code::kUnsupported);
  EXPECT_EQ(error_of("{{ [1] | reverse }}").code, Code::kUnsupported) << "Python prints an address";
  EXPECT_EQ(error_of("{{ strftime_now('%Q') }}").code, Code::kUnsupported);
}

TEST(Template, ClockIsInjected) {
  const auto parsed = Template::parse("{{ strftime_now('%d %B %Y') }}", "t");
  ASSERT_TRUE(parsed.has_value());
  RenderOptions options;
  options.clock = [] {
    std::tm now{};
    now.tm_year = 126;
    now.tm_mon = 1;
    now.tm_mday = 3;
    return now;
  };
  const auto rendered = parsed->render(Json::object(), options);
  ASSERT_TRUE(rendered.has_value());
  EXPECT_EQ(rendered->text(), "03 February 2026");
}

TEST(Template, KeyOrderOfJsonIsKept) {
  const Json variables = Json::parse(R"({"x":{"z":1,"a":{"q":[1,2.5,null,true],"b":"é"}}})");
  EXPECT_EQ(text_of("{{ x | tojson }}", variables),
            R"({"z": 1, "a": {"q": [1, 2.5, null, true], "b": "é"}})");
  EXPECT_EQ(text_of("{{ x }}", variables),
            R"({'z': 1, 'a': {'q': [1, 2.5, None, True], 'b': 'é'}})");
}

TEST(Template, LargeDictsKeepOrderAndFindKeys) {
  Json big = Json::object();
  for (int i = 0; i < 100; ++i) big[cat("k", i)] = i;
  EXPECT_EQ(text_of("{{ x.k0 }}{{ x.k15 }}{{ x.k16 }}{{ x.k99 }}{{ x.k100 is defined }}{{ 'k50' in "
                    "x }}{{ (x | list)[98] }}",
                    {{"x", big}}),
            "0151699FalseTruek98");
  EXPECT_EQ(
      text_of("{% set y = dict(x, k3='new', z=1) %}{{ y.k3 }}{{ y.z }}{{ y | length }}{{ x.k3 }}",
              {{"x", big}}),
      "new11013");
}

TEST(Template, InvalidUtf8OfDataIsReplaced) {
  EXPECT_EQ(text_of("{{ x | length }}{{ x }}", {{"x", "a\xFFz"}}), "3a\xEF\xBF\xBDz");
}

TEST(Template, OneTemplateRendersManyTimes) {
  const auto parsed = Template::parse(
      "{% set ns = namespace(n=0) %}{% for m in xs %}{% set ns.n = ns.n + m %}{% endfor %}{{ ns.n "
      "}}",
      "t");
  ASSERT_TRUE(parsed.has_value());
  for (int i = 0; i < 3; ++i) {
    const auto rendered = parsed->render({{"xs", {1, 2, i}}});
    ASSERT_TRUE(rendered.has_value());
    EXPECT_EQ(rendered->text(), cat(3 + i));
  }
  EXPECT_TRUE(parsed->mentions("xs"));
  EXPECT_FALSE(parsed->mentions("tools"));
}

TEST(Template, VariablesMustBeAnObject) {
  const auto parsed = Template::parse("x", "t");
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->render(Json::array()).error().code, Code::kInvalidArgument);
}

}  // namespace
}  // namespace topknot::chat
