// The file that an owner can send: everything found, each verdict, and the machine in the format of
// docs/devices, so that `topknot plan --devices` takes the report as it is. Schema: docs/doctor.md.
//
// It names nobody: no host name, user, path, serial or network number is put in. Of an Error only
// what and why go in, never where.
#pragma once

#include <vector>

#include "base/json_reader.h"
#include "device/machine.h"
#include "doctor/judge.h"

namespace topknot::doctor {

inline constexpr int kReportVersion = device::kReportSchemaVersion;

Json report_json(const Findings& found, const std::vector<Check>& checks);

// This machine with the rates that were measured, each with its source.
device::Machine report_machine(const Findings& found);

}  // namespace topknot::doctor
