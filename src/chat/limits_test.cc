// Templates that would take all memory, all time or all stack end in kOutOfRange.
#include "chat/limits.h"

#include <gtest/gtest.h>

#include "chat/template.h"

namespace topknot::chat {
namespace {

using Json = nlohmann::ordered_json;

std::string repeated(const std::string& text, size_t count) {
  std::string out;
  for (size_t i = 0; i < count; ++i) out += text;
  return out;
}

// Below the defaults, so that the sanitizer builds run these in seconds.
RenderLimits test_limits() {
  RenderLimits limits;
  limits.max_steps = 2'000'000;
  limits.max_output_bytes = size_t{16} << 20;
  limits.max_live_bytes = size_t{64} << 20;
  return limits;
}

void expect_limit(const std::string& source, const RenderLimits& limits = test_limits()) {
  const auto parsed = Template::parse(source, "t");
  const std::string shown = source.substr(0, 100);
  if (!parsed) {
    EXPECT_EQ(parsed.error().code, Code::kOutOfRange) << shown << parsed.error().to_string();
    return;
  }
  RenderOptions options;
  options.limits = limits;
  const auto rendered = parsed->render(Json::object(), options);
  ASSERT_FALSE(rendered.has_value()) << shown;
  EXPECT_EQ(rendered.error().code, Code::kOutOfRange) << shown << rendered.error().to_string();
}

TEST(Limits, NestingOfTheSource) {
  constexpr size_t kDeep = 100'000;
  expect_limit("{{ " + repeated("(", kDeep) + "1" + repeated(")", kDeep) + " }}");
  expect_limit("{{ " + repeated("[", kDeep) + repeated("]", kDeep) + " }}");
  expect_limit("{{ " + repeated("not ", kDeep) + "1 }}");
  expect_limit("{{ " + repeated("-", kDeep) + "1 }}");
  expect_limit("{{ 1" + repeated(" + 1", kDeep) + " }}");
  expect_limit("{{ a" + repeated(".b", kDeep) + " }}");
  expect_limit("{{ a" + repeated("|trim", kDeep) + " }}");
  expect_limit("{{ a" + repeated("()", kDeep) + " }}");
  expect_limit("{{ 1" + repeated(" if 1 else 1", kDeep) + " }}");
  expect_limit("{{ 1" + repeated(" and 1", kDeep) + " }}");
  expect_limit("{{ 1" + repeated(" ** 1", kDeep) + " }}");
  expect_limit("{{ " + repeated("f(", kDeep) + repeated(")", kDeep) + " }}");
  expect_limit(repeated("{% if 1 %}", 50'000));
  expect_limit(repeated("{% for x in y %}", 50'000));
  expect_limit("{% set " + repeated("(", kDeep) + "a" + repeated(")", kDeep) + " = 1 %}");
}

TEST(Limits, ArgumentsCountTowardsDepth) {
  // Each level is a sum whose last operand is a call with the next level as its argument.
  std::string source = "1";
  for (int i = 0; i < 100; ++i) source = repeated("1 + ", 50) + "f(" + source + ")";
  expect_limit("{{ " + source + " }}");
}

TEST(Limits, SizeOfTheSource) { expect_limit(std::string(kMaxTemplateBytes + 1, 'x')); }

TEST(Limits, Recursion) {
  expect_limit("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}");
  expect_limit(
      "{% macro m(n) %}{% if n %}{% for i in [1] %}{{ m(n + 1) | trim }}{% endfor %}{% endif %}{% "
      "endmacro %}{{ m(1) }}");
  expect_limit(
      "{% macro a() %}{{ caller() }}{% endmacro %}{% macro b() %}{% call a() %}{{ b() }}{% endcall "
      "%}{% endmacro %}{{ b() }}");
  expect_limit("{% macro m(x=m()) %}{% endmacro %}{{ m() }}");
}

TEST(Limits, Strings) {
  expect_limit("{{ 'a' * 10**9 }}");
  expect_limit("{{ 'a' * 10**18 }}");
  expect_limit(
      "{% set ns = namespace(x='ab') %}{% for i in range(100) %}{% set ns.x = ns.x + ns.x %}{% "
      "endfor %}");
  expect_limit(
      "{% set ns = namespace(x='ab') %}{% for i in range(100) %}{% set ns.x = ns.x ~ ns.x %}{% "
      "endfor %}");
  expect_limit(
      "{% set ns = namespace(x='ab') %}{% for i in range(100) %}{% set ns.x = ns.x.replace('', "
      "ns.x) %}{% endfor %}");
  expect_limit(
      "{% set ns = namespace(x='ab') %}{% for i in range(100) %}{% set ns.x = [ns.x, ns.x] | "
      "join(ns.x) %}{% endfor %}");
  expect_limit(
      "{% set ns = namespace(x='ab') %}{% for i in range(100) %}{% set ns.x %}{{ ns.x }}{{ ns.x "
      "}}{% endset %}{% endfor %}");
  expect_limit("{{ '%1000000000d' % 1 }}");
  expect_limit("{{ '%*d' % (10**9, 1) }}");
  expect_limit("{{ '{:1000000000}'.format(1) }}");
  expect_limit("{{ 'a'.center(10**9) }}");
  expect_limit("{{ 'a' | indent(10**9) }}");
  expect_limit("{{ [1] | tojson(indent=10**9) }}");
}

TEST(Limits, Lists) {
  expect_limit("{{ [1] * 10**9 }}");
  expect_limit("{{ range(10**9) }}");
  expect_limit("{{ range(-9223372036854775807, 9223372036854775807) }}");
  expect_limit(
      "{% set ns = namespace(x=[1]) %}{% for i in range(100) %}{% set ns.x = ns.x + ns.x %}{% "
      "endfor %}");
  expect_limit("{{ [1] | batch(10**9, 0) | list }}");
  expect_limit("{{ ('a' * 10**7) | list | length }}");
  expect_limit("{{ ('a,' * 10**7).split(',') | length }}");
}

TEST(Limits, DepthOfValues) {
  expect_limit(
      "{% set ns = namespace(x=1) %}{% for i in range(100000) %}{% set ns.x = [ns.x] %}{% endfor "
      "%}");
  expect_limit(
      "{% set ns = namespace(x=1) %}{% for i in range(100000) %}{% set ns.x = {'a': ns.x} %}{% "
      "endfor %}");
  expect_limit(
      "{% set ns = namespace(x=1) %}{% for i in range(100000) %}{% set ns.x = cycler(ns.x) %}{% "
      "endfor %}");
  expect_limit(
      "{% set ns = namespace(x=1) %}{% for i in range(100000) %}{% set ns.x = [ns.x] | reverse "
      "%}{% endfor %}");
  expect_limit(
      "{% set ns = namespace(x=1) %}{% for i in range(100000) %}{% set ns.x = joiner(ns.x) %}{% "
      "endfor %}");
  expect_limit("{% set ns = namespace() %}{% set ns.x = ns %}{{ ns }}");
}

TEST(Limits, SharedValuesDoNotExplode) {
  const std::string twice =
      "{% set ns = namespace(x=[1], y=[1]) %}{% for i in range(100) %}{% set ns.x = [ns.x, ns.x] "
      "%}{% set ns.y = [ns.y, ns.y] %}{% endfor %}";
  expect_limit(twice + "{{ ns.x }}");
  expect_limit(twice + "{{ ns.x == ns.y }}");
  expect_limit(twice + "{{ ns.x | tojson }}");
  expect_limit(twice + "{{ ns.x < ns.y }}");
}

TEST(Limits, MemoryOfAllValuesTogether) {
  expect_limit(
      "{% set ns = namespace(x=[]) %}{% for i in range(100) %}{% set ns.x = ns.x + ['a' * 10000000 "
      "~ i] %}{% endfor %}",
      RenderLimits{});
}

TEST(Limits, Output) {
  expect_limit("{% set x = 'a' * 10000000 %}{% for i in range(100) %}{{ x }}{% endfor %}");
}

TEST(Limits, Steps) {
  RenderLimits limits;
  limits.max_steps = 1'000'000;
  expect_limit("{% for a in range(10000) %}{% for b in range(10000) %}{% endfor %}{% endfor %}",
               limits);
  expect_limit("{% set x = range(1000) | list %}{% for a in x %}{{ 1000 in x }}{% endfor %}",
               limits);
  expect_limit(
      "{% set x = 'ab' * 100000 %}{% for a in range(10000) %}{% if 'ba' * 100 in x %}{% endif %}{% "
      "endfor %}",
      limits);
}

TEST(Limits, SearchIsNotQuadratic) {
  // 4 MiB in 8 MiB: hopeless for a naive search.
  const auto parsed = Template::parse(
      "{{ ('a' * 8388608).find('a' * 4194304 ~ 'b') }}{{ ('a' * 4194304 ~ 'b') in ('a' * 8388608) "
      "}}",
      "t");
  ASSERT_TRUE(parsed.has_value());
  const auto rendered = parsed->render(Json::object());
  ASSERT_TRUE(rendered.has_value());
  EXPECT_EQ(rendered->text(), "-1False");
  expect_limit("{{ ('a' * 8388608).rfind('b' ~ 'a' * 4194304) }}");
}

TEST(Limits, Integers) {
  expect_limit("{{ 9223372036854775807 + 1 }}");
  expect_limit("{{ 9223372036854775808 }}");
  expect_limit("{{ -9223372036854775807 - 2 }}");
  expect_limit("{{ 4611686018427387904 * 2 }}");
  expect_limit("{{ 10 ** 19 }}");
  expect_limit("{{ 2 ** 9223372036854775807 }}");
  expect_limit("{{ 10.0 ** 1000 }}");
  expect_limit("{{ (-9223372036854775807 - 1) | abs }}");
  expect_limit("{{ -(-9223372036854775807 - 1) }}");
  expect_limit("{{ (-9223372036854775807 - 1) // -1 }}");
  expect_limit("{{ 1e30 | int }}");
  expect_limit("{{ '99999999999999999999' | int }}");
  const auto parsed = Template::parse(
      "{{ (-9223372036854775807 - 1) % -1 }}{{ [1, 2, 3][::9223372036854775807] }}{{ [1, "
      "2][-9223372036854775807:] }}",
      "t");
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->render(Json::object())->text(), "0[1][1, 2]");
}

TEST(Limits, CyclesAreFreed) {
  // The address sanitizer's leak check is the judge.
  const char* sources[] = {
      "{% set ns = namespace() %}{% set ns.a = ns %}{% set ns.b = [ns] %}",
      "{% set ns = namespace() %}{% macro m() %}{% endmacro %}{% set ns.m = m %}{% set m2 = m %}",
      "{% for i in [1, 2] %}{% macro m() %}{{ i }}{% endmacro %}{% set k = [m] %}{% endfor %}",
      "{% for i in [1, 2] %}{{ loop.changed(loop) }}{% set l = loop %}{% endfor %}",
      "{% set ns = namespace() %}{% for i in [1, 2] %}{% set ns.l = loop %}{% endfor %}{{ "
      "ns.l.changed(ns.l) }}",
      "{% macro m() %}{% set ns.c = caller %}{% endmacro %}{% set ns = namespace() %}{% call m() "
      "%}{{ m }}{% endcall %}{{ ns.c() }}"};
  for (const char* source : sources) {
    const auto parsed = Template::parse(source, "t");
    ASSERT_TRUE(parsed.has_value()) << source;
    const auto rendered = parsed->render(Json::object());
    EXPECT_TRUE(rendered.has_value()) << source << rendered.error().to_string();
  }
}

TEST(Limits, DataIsBoundedToo) {
  Json deep = 1;
  for (int i = 0; i < 1000; ++i) deep = Json::array({deep});
  const auto parsed = Template::parse("{{ x }}", "t");
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->render({{"x", deep}}).error().code, Code::kOutOfRange);
  EXPECT_EQ(parsed->render({{"x", UINT64_MAX}}).error().code, Code::kOutOfRange);
  EXPECT_EQ(parsed->render({{"x", std::string(kMaxStringBytes + 1, 'x')}}).error().code,
            Code::kOutOfRange);
}

}  // namespace
}  // namespace topknot::chat
