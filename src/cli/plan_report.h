// A plan for people and for programs. The schema of the JSON is in docs/plan.md.
#pragma once

#include <string>
#include <vector>

#include "cli/output.h"
#include "device/machine.h"
#include "plan/plan.h"

namespace topknot::cli {

// What was planned for whom.
struct PlannedModel {
  const model::ModelConfig& config;
  uint64_t file_bytes;
  const device::Machine& machine;
};

Json model_json(const PlannedModel& model);
Json machine_json(const plan::Target& target, const PlannedModel& model);
Json plan_json(const plan::Plan& plan, const PlannedModel& model);

// Tables of at most 100 columns.
std::string plan_text(const plan::Plan& plan, const PlannedModel& model);

// The lines "model ..." and "machine ...", which head every answer.
std::string model_text(const PlannedModel& model);
std::string machine_text(const plan::Target& target, const PlannedModel& model);

// Every candidate of one operation, with what it needs, what was found, why, and the remedy.
std::string explanation_text(const plan::Operation& operation);
std::string choice_text(const capability::Choice& choice);
Json operation_json(const plan::Operation& operation);

std::string refusals_text(const std::vector<capability::Refusal>& refusals);
Json refusals_json(const std::vector<capability::Refusal>& refusals);

}  // namespace topknot::cli
