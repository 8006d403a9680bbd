#include "cli/arguments.h"

#include <gmock/gmock.h>

namespace topknot::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Words = std::vector<std::string>;

// A program with one command that has each kind of option.
struct Program {
  Program() {
    command = app.add_subcommand("run");
    command->add_option("-p,--prompt", prompt);
    command->add_option("-s,--seed", seed);
    command->add_option("--system-prompt", system);
    command->add_option("--ubatch-size", ubatch);
    command->add_option("--stop", stop)->allow_extra_args(false);
    command->add_flag("--raw", raw);
    app.add_subcommand("inspect");
    app.require_subcommand(0, 1);
    app.allow_extras();
    command->allow_extras();
  }
  void parse(Words words) {
    words = expand_short_names(std::move(words), app);
    std::reverse(words.begin(), words.end());
    app.parse(words);
  }

  CLI::App app;
  CLI::App* command;
  std::string prompt = "unset", system;
  int seed = 0, ubatch = 0;
  std::vector<std::string> stop;
  bool raw = false;
};

TEST(Arguments, SpellingsOfLlamaCppBecomeLongNames) {
  Program p;
  EXPECT_THAT(expand_short_names({"run", "-sys", "Be brief.", "-ub", "64"}, p.app),
              ElementsAre("run", "--system-prompt", "Be brief.", "--ubatch-size", "64"));
}

TEST(Arguments, ValuesAreNeverRewritten) {
  Program p;
  EXPECT_THAT(expand_short_names({"run", "-p", "-sys", "--raw", "-sys", "-ub"}, p.app),
              ElementsAre("run", "-p", "-sys", "--raw", "--system-prompt", "-ub"));
}

TEST(Arguments, AValueBehindAnEqualsSignIsItsOwnWord) {
  Program p;
  EXPECT_THAT(expand_short_names({"run", "-s=3", "-ub=64", "-p", "-s=4", "-x=1", "--"}, p.app),
              ElementsAre("run", "-s", "3", "--ubatch-size", "64", "-p", "-s=4", "-x=1", "--"));
}

TEST(Arguments, HabitsFromElsewhereAreRefusedAndValuesAreNone) {
  Program p;
  for (const char* typed : {"-ngl", "-fa", "--jinja", "-b", "-ngl=99", "-i"}) {
    const auto error = check_habits({"run", "-p", "x", typed, "99"}, p.app);
    ASSERT_TRUE(error.has_value()) << typed;
    EXPECT_FALSE(error->fix.empty());
  }
  EXPECT_FALSE(check_habits({"run", "-p", "-ngl", "-sys", "-fa", "--", "-b"}, p.app));
  EXPECT_FALSE(check_habits({"inspect", "-i"}, p.app));
}

TEST(Arguments, NothingIsRewrittenWithoutTheOptionOrBehindTwoDashes) {
  Program p;
  EXPECT_THAT(expand_short_names({"run", "-ctk", "bf16"}, p.app),
              ElementsAre("run", "-ctk", "bf16"));
  EXPECT_THAT(expand_short_names({"run", "--", "-sys"}, p.app), ElementsAre("run", "--", "-sys"));
}

TEST(Arguments, PromptsArriveByteForByte) {
  for (const char* text : {"", "[a, b]", "{}", "%%", "-n", "--raw", "a=b", "'quoted'", "\"", "/x",
                           "[gMASK]<sop>", "[x]", "run", "#", "\\n"}) {
    Program p;
    p.parse({"run", "-p", text, "--seed", "-1"});
    EXPECT_EQ(p.prompt, text);
    EXPECT_EQ(p.seed, -1);
    EXPECT_FALSE(check_extras(p.app).has_value()) << text;
  }
}

TEST(Arguments, RepeatableOptionsTakeOneValueEach) {
  Program p;
  p.parse({"run", "--stop", "[a]", "--stop", "b", "--raw"});
  EXPECT_THAT(p.stop, ElementsAre("[a]", "b"));
  EXPECT_TRUE(p.raw);
}

TEST(Arguments, AnUnknownOptionGetsTheNearest) {
  Program p;
  p.parse({"run", "--promt", "x"});
  const auto error = check_extras(p.app);
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->what, "unknown option '--promt'");
  EXPECT_THAT(error->fix, HasSubstr("did you mean --prompt"));
  EXPECT_THAT(error->fix, HasSubstr("topknot run --help"));
}

TEST(Arguments, AnUnknownCommandGetsTheNearest) {
  Program p;
  p.parse({"inspct"});
  const auto error = check_extras(p.app);
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->what, "unknown command 'inspct'");
  EXPECT_THAT(error->fix, HasSubstr("did you mean inspect?"));
}

TEST(Arguments, AWordTooManyIsNamed) {
  Program p;
  p.parse({"run", "-p", "x", "y"});
  const auto error = check_extras(p.app);
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->what, "unexpected argument 'y'");
}

}  // namespace
}  // namespace topknot::cli
