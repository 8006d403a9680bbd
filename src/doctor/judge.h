// A verdict for each thing that was examined, with what to do about it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "doctor/findings.h"

namespace topknot::doctor {

// Problem: something is broken and `remedy` says what to do. Note: nothing is, but an owner may
// want to know or change it.
enum class Verdict : uint8_t { kOk, kNote, kProblem };
std::string_view verdict_name(Verdict verdict);  // "ok", "note", "problem"

struct Check {
  std::string name;  // "memory rate", "cuda:0"
  Verdict verdict = Verdict::kOk;
  std::string text;    // what was found, with its numbers
  std::string remedy;  // never empty for a problem
};

// In the order people read them: build, system, host, GPUs, probes, benchmark.
std::vector<Check> judge(const Findings& found);

bool anything_broken(const std::vector<Check>& checks);

}  // namespace topknot::doctor
