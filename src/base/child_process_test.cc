#include "base/child_process.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <thread>

namespace topknot {
namespace {

using namespace std::chrono_literals;
using End = ChildOutcome::End;

ChildOutcome outcome_of(const std::function<void(const SendToParent&)>& body,
                        std::chrono::milliseconds limit = 60s) {
  auto outcome = run_in_child(body, limit);
  EXPECT_TRUE(outcome);
  return std::move(*outcome);
}

TEST(ChildProcess, WhatItSendsArrivesWhole) {
  const std::string large(kMaxChildMessageBytes, 'x');
  const auto outcome = outcome_of([&](const SendToParent& send) {
    send("one");
    send("");
    for (int i = 0; i < 8; ++i) send(large);
    send(large + "more");
  });
  EXPECT_EQ(outcome.end, End::kReturned);
  ASSERT_EQ(outcome.messages.size(), 11u);
  EXPECT_EQ(outcome.messages[0], "one");
  EXPECT_EQ(outcome.messages[1], "");
  EXPECT_EQ(outcome.messages[9], large);
  EXPECT_EQ(outcome.messages[10], large);
}

TEST(ChildProcess, FaultsAreAnswers) {
  const auto fault = outcome_of([](const SendToParent& send) {
    send("before");
    ::raise(SIGSEGV);
  });
  EXPECT_EQ(fault.end, End::kSignal);
  EXPECT_EQ(fault.number, SIGSEGV);
  EXPECT_THAT(fault.messages, testing::ElementsAre("before"));
  EXPECT_EQ(describe_end(fault, 1s), "signal 11 (Segmentation fault)");
  EXPECT_EQ(outcome_of([](const SendToParent&) { std::abort(); }).number, SIGABRT);
  EXPECT_EQ(outcome_of([](const SendToParent&) { throw std::runtime_error("x"); }).number, SIGABRT);
  const auto left = outcome_of([](const SendToParent&) { ::_exit(0); });
  EXPECT_EQ(left.end, End::kExited) << "even with 0 it did not return";
  EXPECT_EQ(describe_end(left, 1s), "exit code 0");
}

TEST(ChildProcess, OneWithoutEndIsKilled) {
  const auto begin = std::chrono::steady_clock::now();
  const auto outcome = outcome_of(
      [](const SendToParent& send) {
        send("before");
        for (;;) std::this_thread::sleep_for(1s);
      },
      300ms);
  EXPECT_EQ(outcome.end, End::kTimedOut);
  EXPECT_THAT(outcome.messages, testing::ElementsAre("before"));
  EXPECT_EQ(describe_end(outcome, 300ms), "no end within 0.3 s");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 30s);
}

TEST(ChildProcess, OneThatClosesItsPipeOrPrintsHarmsNothing) {
  testing::internal::CaptureStdout();
  const auto outcome = outcome_of([](const SendToParent& send) {
    std::printf("noise");
    std::fflush(stdout);
    send("text");
  });
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_THAT(outcome.messages, testing::ElementsAre("text"));
  const auto closed = outcome_of([](const SendToParent&) {
    for (int fd = 3; fd < 64; ++fd) ::close(fd);
  });
  EXPECT_EQ(closed.end, End::kExited);
}

}  // namespace
}  // namespace topknot
