// What a report about a machine says beside host_facts.h: the operating system, where the program
// runs inside it, and the limits it was started with. Nothing here decides anything.
//
// A report leaves the machine: nothing that names its owner is read (no host name, no user, no
// path, no serial number).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace topknot::device {

struct SystemFacts {
  std::string os;      // "Debian GNU/Linux 12 (bookworm)"; empty where nobody tells
  std::string kernel;  // "6.1.0-18-amd64"; only its numbers when the rest holds the host's name
  std::string architecture;      // "x86_64"
  bool virtual_machine = false;  // the processor says that a hypervisor is below
  std::string container;         // "docker", "podman", "kubernetes", "lxc", ...; empty: none found

  int processors = 0;      // online, whoever may use them; 0 where the kernel does not tell
  int physical_cores = 0;  // 0 likewise
  uint64_t last_level_cache_bytes = 0;    // of all of them together; 0 likewise
  std::string governor;                   // of the clock of processor 0: "performance", "powersave"
  std::string huge_pages;                 // transparent: "always", "madvise", "never"
  std::optional<double> processor_quota;  // processors' worth of time the control group grants

  std::optional<uint64_t> address_space_limit;  // bytes, `ulimit -v`; none: unlimited
  std::optional<uint64_t> locked_memory_limit;  // bytes, `ulimit -l`

  int nvidia_gpus = 0;        // on the PCI bus, with or without a driver
  std::string nvidia_driver;  // version of the kernel's module; empty: not loaded
};

// `root` as for memory_facts(). The limits, and the kernel's name, are those of this process.
SystemFacts system_facts(const std::string& root = "/");

// The release that uname tells, cut to its leading numbers if the rest contains `host_name`.
std::string kernel_release(const std::string& release, const std::string& host_name);

}  // namespace topknot::device
