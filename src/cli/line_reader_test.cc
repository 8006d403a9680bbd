#include "cli/line_reader.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <thread>
#include <vector>

#include "cli/interrupt.h"

namespace topknot::cli {
namespace {

using testing::ElementsAre;

class Pipe {
 public:
  Pipe() { EXPECT_EQ(::pipe(ends_), 0); }
  ~Pipe() {
    close_writer();
    ::close(ends_[0]);
  }
  void write(std::string_view text) {
    EXPECT_EQ(::write(ends_[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  void close_writer() {
    if (ends_[1] >= 0) ::close(ends_[1]);
    ends_[1] = -1;
  }
  int reader() const { return ends_[0]; }

 private:
  int ends_[2] = {-1, -1};
};

std::vector<std::string> turns(std::string_view text) {
  Pipe pipe;
  pipe.write(text);
  pipe.close_writer();
  LineReader reader(pipe.reader());
  std::vector<std::string> out;
  std::string turn;
  while (reader.read_turn("", "", &turn) == Input::kText) out.push_back(turn);
  return out;
}

TEST(LineReader, EachLineIsATurnAndTheLastNeedsNoNewline) {
  EXPECT_THAT(turns("one\ntwo\r\n\nthree"), ElementsAre("one", "two", "", "three"));
}

TEST(LineReader, ABackslashContinuesALine) {
  EXPECT_THAT(turns("one\\\ntwo\\\n\\\nthree\nfour\\"), ElementsAre("one\ntwo\n\nthree", "four"));
}

TEST(LineReader, ABlockKeepsItsLinesAsTheyAre) {
  EXPECT_THAT(turns("\"\"\"\n\na\\\n  b\n\n\"\"\"\nnext\n"), ElementsAre("\na\\\n  b\n", "next"));
  EXPECT_THAT(turns("\"\"\"one\ntwo\"\"\"\n\"\"\"three\"\"\"\n"), ElementsAre("one\ntwo", "three"));
  EXPECT_THAT(turns("\"\"\"one\ntwo"), ElementsAre("one\ntwo"));
}

TEST(LineReader, CtrlCEndsAWaitAlsoWhenItCameBefore) {
  Interrupt::install();
  Pipe pipe;
  LineReader reader(pipe.reader());
  std::string turn;
  ::raise(SIGINT);  // between two waits
  EXPECT_TRUE(Interrupt::flag().load());
  EXPECT_EQ(reader.read_turn("", "", &turn), Input::kInterrupted);
  EXPECT_FALSE(Interrupt::flag().load());
  std::thread other([] {  // the signal may be taken by any thread
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ::raise(SIGINT);
  });
  EXPECT_EQ(reader.read_turn("", "", &turn), Input::kInterrupted);
  other.join();
  pipe.write("text\n");
  EXPECT_EQ(reader.read_turn("", "", &turn), Input::kText);
  EXPECT_EQ(turn, "text");
  ::signal(SIGINT, SIG_DFL);
}

TEST(LineReader, CtrlCWithinATurnDropsThatTurnOnly) {
  Interrupt::install();
  Pipe pipe;
  LineReader reader(pipe.reader());
  pipe.write("half \\\n");
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ::raise(SIGINT);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    pipe.write("whole\n");
  });
  std::string turn;
  EXPECT_EQ(reader.read_turn("", "", &turn), Input::kText);
  other.join();
  EXPECT_EQ(turn, "whole");
  ::signal(SIGINT, SIG_DFL);
}

}  // namespace
}  // namespace topknot::cli
