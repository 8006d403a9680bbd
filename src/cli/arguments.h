// The command line before and after CLI11: spellings it cannot parse, and near misses.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "topknot/error.h"

namespace topknot::cli {

// The arguments after the program's name, with the options that llama.cpp spells with one dash and
// several letters (-sys, -ctk, -ub) in their long form: CLI11 would read -sys as -s ys. What
// follows an option that takes a value is a value and stays as it is. -n=3 becomes -n 3.
std::vector<std::string> expand_short_names(std::vector<std::string> arguments,
                                            const CLI::App& app);

// The first option that belongs to other programs and that CLI11 would take apart (-ngl as -n gl),
// with what to do here. For commands that run or plan a model; `arguments` as they were typed.
std::optional<Error> check_habits(const std::vector<std::string>& arguments, const CLI::App& app);

// The arguments that no option or command took, as an error with the nearest candidates.
std::optional<Error> check_extras(const CLI::App& app);

// An option that names something and was given an empty text: an unset variable of a script.
std::optional<Error> check_empty(const CLI::App& app);

// What CLI11 found wrong, in our form. `app` is the whole program after parsing.
Error usage_error(const CLI::ParseError& error, const CLI::App& app);

}  // namespace topknot::cli
